# A label cannot be read from package.json, so the version is repeated here. The build fails when the two
# versions differ.
ARG VERSION=0.3.0

FROM node:24-bookworm-slim AS build
ARG VERSION
WORKDIR /app
COPY package.json package-lock.json ./
RUN [ "$(node -p 'require("./package.json").version')" = "$VERSION" ] \
  || { echo "VERSION in the Dockerfile is $VERSION; package.json has another one" >&2; exit 1; }
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
RUN npm run build

FROM node:24-bookworm-slim AS service
WORKDIR /app
COPY package.json package-lock.json ./
# No production dependency needs its install script. The image does not need the shell scripts, commands
# and source maps of the packages.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
  && find node_modules \( -name '*.sh' -o -name '*.map' -o -name .bin -o -name .husky \) -prune \
    -exec rm -rf {} + \
  && rm package-lock.json
COPY sql ./sql
COPY --from=build /app/dist ./dist

# This stage fills Node's compile cache, so that the service starts faster. It starts the service, which loads
# its modules (except those that are loaded only when they are needed) and then fails because there is no
# database. The cache is valid only for this version of Node, this processor architecture and this user id. If
# one of them differs, Node compiles the modules again.
FROM service AS compiled
USER node
ENV NODE_COMPILE_CACHE=/tmp/compiled METRICS=true
RUN DATABASE_URL=postgres://user@127.0.0.1:1/database JWT_SECRET=0123456789abcdef0123456789abcdef \
    CAPTCHA_SECRET=none CLOUDINARY_URL=cloudinary://key:secret@cloud node dist/server.js \
  || [ -n "$(ls /tmp/compiled)" ]
# Node lets only the owner read these files. In the final image the owner is root, but the service runs as
# another user, so everybody must be able to read them.
RUN chmod -R a+rX /tmp/compiled

FROM node:24-bookworm-slim
ARG VERSION
# The commit from which the image is built.
ARG REVISION
LABEL org.opencontainers.image.title=llavero \
  org.opencontainers.image.description="Access control: users, profiles, modules and permissions" \
  org.opencontainers.image.version=$VERSION \
  org.opencontainers.image.revision=$REVISION
ENV NODE_COMPILE_CACHE=/var/cache/llavero
WORKDIR /app
# Everything belongs to root, so the service can change neither its code nor the compile cache.
COPY --from=service /app/node_modules ./node_modules
COPY package.json ./
COPY sql ./sql
COPY --from=build /app/dist ./dist
COPY --from=compiled --chown=root:root /tmp/compiled /var/cache/llavero
USER node
EXPOSE 3000
# The image has neither curl nor wget. An empty PORT counts as not set, as in the service.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 3000}/health/live`, { signal: AbortSignal.timeout(4000) }).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
# Neither npm nor a shell starts the service, because they would not forward SIGTERM to it.
CMD ["node", "dist/server.js"]
