# One file, two images: `gateway` and `backend`. No build step: Node 24 runs the TypeScript as it is.
FROM node:24-bookworm-slim AS lock
WORKDIR /app
COPY package.json package-lock.json .npmrc ./

# npm skips the packages of a workspace whose folder is absent. `--workspaces=false` would leave some of them.
FROM lock AS gateway-dependencies
COPY config/package/reference/package.json ./config/package/reference/
RUN npm ci --omit=dev --omit=optional

FROM lock AS backend-dependencies
COPY backend/package.json ./backend/
RUN npm ci --omit=dev --omit=optional --workspace backend

# `COPY` keeps the modes of the host's files. In a clone made under umask 077 only their owner may read them.
FROM node:24-bookworm-slim AS sources
WORKDIR /app
COPY package.json ./
COPY gateway ./gateway
COPY backend ./backend
RUN chmod -R a+rX .

FROM node:24-bookworm-slim AS runtime
ENV NODE_ENV=production
WORKDIR /app
COPY --from=sources /app/package.json ./
USER node

FROM runtime AS backend
COPY --from=backend-dependencies /app/node_modules ./node_modules
COPY --from=sources /app/backend ./backend
EXPOSE 3000
CMD ["node", "backend/main.ts"]

FROM runtime AS gateway
COPY --from=gateway-dependencies /app/node_modules ./node_modules
COPY --from=sources /app/gateway ./gateway
# A configuration of `tollgate init` reads TOLLGATE_HOST and TOLLGATE_ADMIN_HOST. The host of a container decides which ports it publishes.
ENV TOLLGATE_CONFIG=/etc/tollgate/tollgate.yaml TOLLGATE_HOST=0.0.0.0 TOLLGATE_ADMIN_HOST=0.0.0.0
EXPOSE 8080 9090
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.ADMIN_PORT || 9090}/readyz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "gateway/main.ts"]
