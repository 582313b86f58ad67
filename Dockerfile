# The service, its worker and its programs, without the embedded PostgreSQL and without tests.
#   docker build -t kilolock-state-archive .
#   docker run --rm kilolock-state-archive kl --help
# docs/containers.md says how to run it; compose.yaml is a whole deployment.

# The Node.js that package.json brings everywhere else; a test keeps the two in step.
ARG NODE_VERSION=24.21.0
ARG NODE_IMAGE=docker.io/library/node:${NODE_VERSION}-bookworm-slim

FROM ${NODE_IMAGE} AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# The optional packages are Node.js, which is here, and the embedded PostgreSQL, which is for laptops.
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund \
  && mkdir -p node_modules/.bin && ln -sf "$(command -v node)" node_modules/.bin/node

FROM ${NODE_IMAGE}
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data PATH=/app/bin:${PATH} MALLOC_ARENA_MAX=2
# What a process works on; the one place it writes to. One of its own for each container.
RUN install -d -o node -g node -m 0700 /data
VOLUME /data
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY package.json schema.graphql LICENSE ./
COPY bin bin
COPY src src
USER node
EXPOSE 4001
STOPSIGNAL SIGTERM
# Alive, not ready: a container that waits for its database is no reason to start another.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 4001}/livez`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
# As `npm start`, whose shell and npm would stand between the process and its signals.
CMD ["node", "--max-semi-space-size=4", "src/main.ts"]
