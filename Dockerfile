FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
RUN npm run build

FROM node:24-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# No production dependency has an install script that it needs. Shell scripts, commands and source
# maps that packages bring along have no use there.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
  && find node_modules \( -name '*.sh' -o -name '*.map' -o -name .bin -o -name .husky \) -prune \
    -exec rm -rf {} +

FROM node:24-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
# All of it belongs to root: the service cannot change its own code.
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json ./
COPY sql ./sql
COPY --from=build /app/dist ./dist
USER node
EXPOSE 3000
# The image has neither curl nor wget. An empty PORT counts as not set, as in the service.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 3000}/health/live`, { signal: AbortSignal.timeout(4000) }).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
# Not through npm or a shell, which would keep SIGTERM from the service.
CMD ["node", "dist/server.js"]
