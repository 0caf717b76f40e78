# Everything but what extras need: Spark itself, and the solver for many jobs.
#   docker build -t headway .
#   docker run --rm -v "$PWD:/work" headway plan job.profile.yaml --rate 50k/s --target 'p99 <= 3s'
# Versions are those of constraints.txt, with which the tests run.
FROM python:3.12-slim AS build
COPY . /source
RUN pip install --no-cache-dir --constraint /source/constraints.txt hatchling
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /dist /source

FROM python:3.12-slim
COPY --from=build /source/constraints.txt /dist/
COPY --from=build /dist /dist
RUN pip install --no-cache-dir --constraint /dist/constraints.txt /dist/headway-*.whl && rm -r /dist && useradd --create-home headway
USER headway
WORKDIR /work
ENTRYPOINT ["headway"]
CMD ["--help"]
