"""What is learnt from text without a gradient: tags, topics, domains, tf-idf."""
