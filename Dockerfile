# One file, two images: `gateway` and `backend`. No build step: Node 24 runs the TypeScript as it is.
FROM node:24-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The optional packages hold a Node for machines with an older one; this image has the right one.
RUN npm ci --omit=dev --omit=optional

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
COPY --from=dependencies /app/node_modules ./node_modules
USER node

FROM runtime AS backend
COPY --from=sources /app/backend ./backend
EXPOSE 3000
CMD ["node", "backend/main.ts"]

FROM runtime AS gateway
COPY --from=sources /app/gateway ./gateway
EXPOSE 8080 9090
CMD ["node", "gateway/main.ts"]
