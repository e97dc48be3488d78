# The image contains the pinned Node from package-lock.json, the dependencies of the service, the source, and the
# bundle that runs. npm, the other development dependencies, and the types, maps and sources of the dependencies
# stay in the first stage.

FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
# Only the binary of Node, which is a development dependency so that consumers of the package do not install it (ADR 0215)
RUN npm ci --omit=dev --no-audit --no-fund \
  && npm install --prefix /node --no-audit --no-fund "node-linux-$(node -p process.arch)@$(node -p "require('./package-lock.json').packages['node_modules/node'].version")" \
  && install -D /node/node_modules/node-linux-*/bin/node /node/bin/node \
  && npm cache clean --force \
  && find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete \
  && rm -r node_modules/effect/src
COPY schema ./schema
COPY src ./src

# The bundles of the console and of the service, built with only the development dependencies that they need
FROM build AS bundles
RUN npm install --prefix /bundles --no-audit --no-fund $(node -e "import('./src/cli/console/buildConsole.ts').then(({ bundledPackages }) => console.log(bundledPackages().join(' ')))") \
  && cp -r /bundles/node_modules/. node_modules/ \
  && /node/bin/node src/cli/console/buildConsole.ts \
  && /node/bin/node src/cli/service/buildService.ts

# One start fills Node's compile cache, which depends on the user and on Node's flags
FROM bundles AS compiled
RUN install -d -o 10001 build/compiled
USER 10001:10001
RUN export NODE_COMPILE_CACHE=/app/build/compiled DATA_DIR=/tmp/data PORT=8080; \
  /node/bin/node --max-semi-space-size=16 --heap-growing-percent=100 --no-allocation-site-pretenuring --v8-pool-size=1 build/main.mjs & \
  until /node/bin/node -e "fetch('http://127.0.0.1:8080/readyz').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"; do sleep 1; kill -0 $! || exit 1; done \
  && kill $! && wait $! \
  && chmod -R a+rX build/compiled

FROM debian:bookworm-slim
# Numeric ids, so that an orchestrator can verify that the user is not root.
RUN groupadd --gid 10001 gateway \
  && useradd --uid 10001 --gid gateway --no-create-home --shell /usr/sbin/nologin gateway \
  && install -d -o gateway -g gateway -m 0700 /data
WORKDIR /app
COPY --from=build /node/bin/node /usr/local/bin/node
COPY --from=build /app ./
COPY --from=compiled /app/src/http/console/dist ./src/http/console/dist
COPY --from=compiled /app/build ./build
ENV HOST=0.0.0.0 \
  PORT=8080 \
  DATA_DIR=/data \
  LOG_FORMAT=json \
  NODE_ENV=production \
  NODE_COMPILE_CACHE=/app/build/compiled
USER 10001:10001
VOLUME ["/data"]
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["/usr/local/bin/node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/readyz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["/usr/local/bin/node"]
# The flags keep the heap small and its collection cheap (ADR 0233); as in package.json.
CMD ["--max-semi-space-size=16", "--heap-growing-percent=100", "--no-allocation-site-pretenuring", "--v8-pool-size=1", "build/main.mjs"]
