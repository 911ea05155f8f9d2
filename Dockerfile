# One file, two images: `gateway` and `backend`. No build step: Node 24 runs the TypeScript as it is.
FROM node:24-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The optional packages hold a Node for machines with an older one; this image has the right one.
RUN npm ci --omit=dev --omit=optional

FROM node:24-bookworm-slim AS runtime
ENV NODE_ENV=production
WORKDIR /app
COPY package.json ./
COPY --from=dependencies /app/node_modules ./node_modules
USER node

FROM runtime AS backend
COPY backend ./backend
EXPOSE 3000
CMD ["node", "backend/main.ts"]

FROM runtime AS gateway
COPY gateway ./gateway
EXPOSE 8080
CMD ["node", "gateway/main.ts"]
