# docker build -t cacheproxy . && docker run -p 8800:8800 -v cacheproxy:/data cacheproxy --upstream http://backend:8000
FROM python:3.11-slim AS build
WORKDIR /src
COPY configs/lock/build.txt configs/lock/requirements.txt configs/lock/
RUN python -m venv --without-pip /opt/cacheproxy \
 && python -m pip --python /opt/cacheproxy/bin/python install --no-cache-dir --require-hashes -r configs/lock/requirements.txt
RUN python -m venv /opt/build \
 && /opt/build/bin/python -m pip install --no-cache-dir --require-hashes -r configs/lock/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY cacheproxy cacheproxy
RUN /opt/build/bin/python -m pip wheel --no-deps --no-build-isolation --wheel-dir /opt/wheels . \
 && python -m pip --python /opt/cacheproxy/bin/python install --no-deps --no-index /opt/wheels/*.whl

FROM python:3.11-slim
RUN useradd --system --uid 10001 --user-group --no-create-home cacheproxy \
 && install --directory --owner=cacheproxy --group=cacheproxy --mode=0700 /data
COPY --from=build /opt/cacheproxy /opt/cacheproxy
# The admin listener stays on loopback: to publish it, set CACHEPROXY_ADMIN__HOST and CACHEPROXY_ADMIN__TOKEN.
ENV PATH=/opt/cacheproxy/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1 \
    CACHEPROXY_LISTEN__HOST=0.0.0.0 \
    CACHEPROXY_STORE__DATA_DIR=/data \
    HF_HOME=/data/models
VOLUME /data
WORKDIR /data
USER 10001:10001
EXPOSE 8800 8801
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["python", "-c", "from urllib import request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:8801/livez', timeout=2)"]
ENTRYPOINT ["cacheproxy", "serve"]
