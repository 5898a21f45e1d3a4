#!/usr/bin/env bash
# Sends bursts to a gateway on this machine, so that its live page moves, and says what came back.
#
#   examples/gateway/try.sh [URL]     http://127.0.0.1:8080/ by default; about half a minute
#
# TRY_ROUNDS sets how many bursts, 10 otherwise and 60 at most.
set -euo pipefail

url=${1:-http://127.0.0.1:8080/}
rounds=${TRY_ROUNDS:-10}
burst=20

if [[ ! $url =~ ^http://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?(/[A-Za-z0-9/._-]*)?$ ]]; then
  echo "try.sh: $url is not on this machine; bursts are for your own gateway only" >&2
  exit 2
fi
if [[ ! $rounds =~ ^[0-9]{1,2}$ ]] || ((10#$rounds < 1 || 10#$rounds > 60)); then
  echo "try.sh: TRY_ROUNDS must be 1 to 60" >&2
  exit 2
fi
command -v curl >/dev/null || { echo "try.sh: \`curl\` is missing" >&2; exit 1; }

if ! page=$(curl -sS --noproxy '*' --max-time 5 "$url"); then
  echo "try.sh: nothing answers at $url; start \`cargo run --release -p tollgate-gateway\`" >&2
  exit 1
fi
grep -a '^live page' <<<"$page" || true

for ((round = 1; round <= 10#$rounds; round++)); do
  # One curl, so that a burst is one connection: the first bursts are small.
  count=$((round < 4 ? round * 3 : RANDOM % burst + 1))
  printf 'burst %2d: %2d requests:' "$round" "$count"
  curl -s --noproxy '*' --max-time 10 -o /dev/null -w '%{http_code}\n' "$url?[1-$count]" |
    sort | uniq -c | awk '{ printf "  %s × %s", $1, $2 } END { print "" }'
  ((round == 10#$rounds)) || sleep 2.5
done
