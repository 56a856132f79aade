#!/usr/bin/env bash
# Earlier versions of README name this path.
exec bash "${BASH_SOURCE[0]%/*}/scripts/bench_vs_torch.sh" "$@"
