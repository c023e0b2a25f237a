-- What a script inside Redis may use: Lua 5.1 without the outside world, and Redis' own globals.
-- Not cjson and cmsgpack: they lose whole numbers and bytes, and users' data is opaque to scripts.
std = "lua51"
read_globals = { "redis", "KEYS", "ARGV" }
not_globals = {
  "dofile", "io", "loadfile", "module", "newproxy", "os", "package", "print", "require",
}
max_line_length = 100
codes = true
