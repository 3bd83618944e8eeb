from dialbench.store.atomic import atomic_write as atomic_write
