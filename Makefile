.DEFAULT_GOAL := help
.PHONY: help demo test lint bench

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-6s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## A tour of twenty seconds, on a Redis of its own unless SPRAG_REDIS_URL or REDIS_URL is set
	@test -n "$$SPRAG_REDIS_URL$$REDIS_URL" || scripts/need redis-server || \
		echo "make demo: no Redis to be had; the demo makes a shorter tour in memory" >&2
	cargo build --release --features cli
	@cargo run --release --features cli --quiet -- demo

# The documentation's programs first, so that the run ends with the summary of the tests.
test: ## Run all tests; needs no running Redis, and installs redis-server if there is none
	@scripts/need redis-server
	@scripts/need python-peer
	@scripts/need other-servers
	@if cargo nextest --version >/dev/null 2>&1; then \
		cargo test --doc --all-features && cargo nextest run --all-features; \
	else \
		cargo test --all-features; \
	fi

# The tests of `store::redis::scripts` run luacheck on the scripts as they are composed.
lint: ## Check the format, the lints of Rust, and the Lua scripts
	cargo fmt --check
	cargo clippy --all-targets --all-features -- -D warnings
	cargo test --quiet --all-features --lib scripts

bench: ## Run the benchmarks, but for scale and soak; figures also in target/bench.json
	@scripts/need redis-server
	cargo bench --all-features --bench bench -- --json $(CURDIR)/target/bench.json
