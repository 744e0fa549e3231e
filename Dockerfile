# The worker as an image: docker build -t holdfast . The configuration is mounted at
# /etc/holdfast/holdfast.yaml, a file:// store lives in the volume /var/lib/holdfast.
FROM golang:1.26.8-alpine3.24 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# Without cgo the binary needs nothing of the system; -trimpath makes its digest, the build id, depend on
# the source alone.
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w" -o /out/holdfast .

# Alpine and not an empty image: it has certificates, a wget for the health check, and apk for the MCP
# servers that somebody wants to add.
FROM alpine:3.24.2
RUN addgroup -S -g 10001 holdfast \
    && adduser -S -D -H -u 10001 -G holdfast -h /var/lib/holdfast holdfast \
    && mkdir -p /etc/holdfast /var/lib/holdfast \
    && chown holdfast:holdfast /var/lib/holdfast
COPY --from=build /out/holdfast /usr/local/bin/holdfast
USER 10001:10001
WORKDIR /var/lib/holdfast
VOLUME /var/lib/holdfast
EXPOSE 8080
# Docker sends SIGTERM, on which the worker lets running activities finish; give it longer than
# worker.stop_timeout (docker stop --time, stop_grace_period).
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["wget", "-q", "-O", "/dev/null", "http://127.0.0.1:8080/readyz"]
ENTRYPOINT ["holdfast"]
CMD ["worker", "--config", "/etc/holdfast/holdfast.yaml"]
