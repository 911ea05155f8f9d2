#!/bin/sh
# An upgrade without a gap, behind config/balanced.compose.yml: replaces the gateways one by one. From the repository:
#   git pull && docker compose build && config/replace-gateways.sh
# For each old gateway it starts a new one, waits until that is healthy, and only then stops the old one, which says 503
# on /readyz, finishes its requests and ends. If a new one does not become healthy, the old ones stay and go on serving.
set -eu

containers() { docker compose ps --quiet gateway | sort; }

old=$(containers)
# Where it counts none, grep exits with 1.
count=$(echo "$old" | grep -c .) || true
[ "$count" -gt 0 ] || { echo 'No gateway is running: docker compose up --detach' >&2; exit 1; }

for container in $old; do
  before=$(containers)
  docker compose up --detach --no-build --no-recreate --scale gateway=$((count + 1)) gateway
  new=$(containers | grep --invert-match --line-regexp --fixed-strings "$before")

  waited=0
  until [ "$(docker inspect --format '{{.State.Health.Status}}' "$new")" = healthy ]; do
    if [ "$waited" -ge 60 ]; then
      echo 'The new gateway is not healthy after 60 s. It ends, the others go on; its last lines:' >&2
      docker logs --tail 20 "$new" >&2
      docker rm --force "$new" >/dev/null
      exit 1
    fi
    sleep 1
    waited=$((waited + 1))
  done
  # The balancer asks for new addresses every half second, and each gateway four times a second.
  sleep 2

  docker stop --time 30 "$container" >/dev/null
  docker rm "$container" >/dev/null
done
