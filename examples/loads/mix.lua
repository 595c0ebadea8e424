-- For wrk. Asks for small files more often than for large ones, with queries and cookies of changing
-- length, and thinks for up to 100 ms in between.
local files = 40
function setup(thread)
  thread:set("seed", (seed_counter or 0) + 1)
  seed_counter = (seed_counter or 0) + 1
end
function init(args)
  math.randomseed(seed)
end
function delay()
  return math.random(0, 100)
end
function request()
  local file = math.floor(files * math.random() ^ 1.7)
  local path = "/" .. file .. ".bin"
  if math.random() < 0.4 then
    path = path .. "?q=" .. string.rep("x", math.random(1, 200))
  end
  local headers = { ["User-Agent"] = "wrk", ["Accept"] = "*/*" }
  if math.random() < 0.6 then
    headers["Cookie"] = "session=" .. string.rep("c", math.random(20, 1200))
  end
  return wrk.format("GET", path, headers)
end
