#!/bin/sh
# Replaces the gateways of config/balanced.compose.yml one by one, so that an upgrade interrupts no request. Run it in the repository:
#   git pull && docker compose build && config/replace-gateways.sh
# The script starts a new gateway, waits until it is healthy, and stops an old gateway, until all old gateways are replaced. A stopped
# gateway answers 503 on /readyz, finishes its requests and exits. If a new gateway does not become healthy, the script removes it and
# stops. The old gateways then continue to serve.
set -eu

containers() { docker compose ps --quiet gateway | sort; }

old=$(containers)
# grep exits with 1 when it counts no lines.
count=$(echo "$old" | grep -c .) || true
[ "$count" -gt 0 ] || { echo 'No gateway is running: docker compose up --detach' >&2; exit 1; }

for container in $old; do
  before=$(containers)
  docker compose up --detach --no-build --no-recreate --scale gateway=$((count + 1)) gateway
  new=$(containers | grep --invert-match --line-regexp --fixed-strings "$before")

  waited=0
  until [ "$(docker inspect --format '{{.State.Health.Status}}' "$new")" = healthy ]; do
    if [ "$waited" -ge 60 ]; then
      echo 'The new gateway is not healthy after 60 s. It is removed, and the old gateways continue to serve. Its last log lines:' >&2
      docker logs --tail 20 "$new" >&2
      docker rm --force "$new" >/dev/null
      exit 1
    fi
    sleep 1
    waited=$((waited + 1))
  done
  # The balancer resolves the gateways' addresses every half second, and checks each gateway four times a second.
  sleep 2

  docker stop --time 30 "$container" >/dev/null
  docker rm "$container" >/dev/null
done
