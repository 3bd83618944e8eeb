# dialbench with all extras; what is read and written lies in the folder that is mounted.
#
#   docker build -t dialbench --build-arg PIP_EXTRA_INDEX_URL=INDEX .     # CPU: the index of torch's CPU builds
#   docker build -t dialbench:cuda --build-arg BASE=IMAGE .               # CUDA: an image with Python 3.11 to 3.13, and torch 2.13.0
#   docker run --rm --user "$(id -u)" -v "$PWD:/work" dialbench run --models all
#   docker run --rm --user "$(id -u)" -v "$PWD:/work" --gpus all dialbench:cuda run --models all
ARG BASE=python:3.11-slim
FROM ${BASE}
ARG EXTRAS=all
ARG PIP_EXTRA_INDEX_URL=
WORKDIR /opt/dialbench
COPY . .
RUN pip install --no-cache-dir -c constraints.txt ".[${EXTRAS}]"
# matplotlib and the download of corpora write below HOME, which an arbitrary user lacks.
ENV HOME=/tmp DIALBENCH_DATA=/work/data
WORKDIR /work
ENTRYPOINT ["dialbench"]
CMD ["--help"]
