
-- ---------------------------------------------------------------------------------------------------------------
-- Nothing below needs to be changed. Memory is counted in MB and time in minutes, as the controller does.

-- Slurm writes "not stated" as a number that depends on the width of the field.
local NARROW = {
  cpus_per_task = true, ntasks_per_node = true, ntasks_per_tres = true, ntasks_per_gpu = true, pn_min_cpus = true,
  requeue = true, shared = true, sockets_per_node = true, cores_per_socket = true, threads_per_core = true,
  ntasks_per_socket = true, ntasks_per_core = true, ntasks_per_board = true, core_spec = true, thread_spec = true,
  contiguous = true,
}

-- Numbers that every submission has. Where one is missing, this Slurm is not as it was when the file was written.
local EXPECTED = {
  "bitflags", "cpus_per_task", "max_nodes", "min_cpus", "min_nodes", "ntasks_per_node", "ntasks_per_tres", "num_tasks",
  "pn_min_cpus", "pn_min_memory", "requeue", "shared", "sockets_per_node", "time_limit",
}

-- Numbers that no command of Slurm's sends as 0: with one the slurmctld of 22.05 gives more than it tells, ends, or never ends
-- a loop while it holds its locks.
local NEVER_ZERO = {
  "cpus_per_task", "max_nodes", "min_nodes", "num_tasks", "ntasks_per_core", "ntasks_per_node", "ntasks_per_socket",
  "sockets_per_node", "cores_per_socket", "threads_per_core", "ntasks_per_tres", "ntasks_per_gpu",
}

-- Fields of a change that decide how large a job is.
local SHAPE = { "tres_per_job", "min_mem_per_node", "min_mem_per_cpu", "req_nodes" }
local COUNTED = {
  "tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task", "gres", "mem_per_tres", "cpus_per_tres",
}
local OF_GRES = { "tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task", "gres" }
local NO_OTHERS = { tres_per_job = true, tres_per_socket = true, tres_per_task = true } -- of gres that are no GPUs
local MINUTES = { "time_limit", "time_min" }
local GPU_SHAPE = { "tres_per_job", "req_nodes" }

-- The same, of which the controller does not tell this file what the job has now: a change cannot be judged.
local HIDDEN = {
  "num_tasks", "cpus_per_task", "ntasks_per_node", "ntasks_per_tres", "ntasks_per_gpu", "ntasks_per_socket",
  "ntasks_per_core", "sockets_per_node", "cores_per_socket", "threads_per_core", "cpus_per_tres", "pn_min_cpus",
}

-- What no change touches. How many tasks a job has is told of none of its fields, 24.11 counts them anew at every change,
-- and 26.05 where one names nodes, and GPUs and CPUs go with them (measured: up to 16 GPUs of 4, and 64G for one GPU).
local FROZEN = {
  min_nodes = "nodes", max_nodes = "nodes", min_cpus = "CPUs", max_cpus = "CPUs", tres_per_node = "gres of each node",
  tres_per_socket = "gres of each socket", tres_per_task = "gres of each task", gres = "gres of each node",
  mem_per_tres = "memory of each GPU",
}

-- Among bitflags. With it Slurm may choose more nodes than are counted here: 26.05 gives `--gpus=1 --spread-job` a GPU on
-- each of two nodes, and the slurmctld of 24.11 ends over it with a segmentation fault.
local SPREAD_JOB = slurm.SPREAD_JOB or 256
local ENFORCE_BINDING = slurm.GRES_ENFORCE_BIND or 16

-- The places of the bitflags that Slurm's own commands send, of 22.05 to 26.05 together. The others Slurm sets itself, but
-- takes them from a program of a user's as well: with 23, that memory was stated, it gives the partition's default memory of
-- each CPU in place of what --mem-per-gpu says, with 31 it may take another partition, with 34 it counts tasks anew (measured).
local SENT_FLAGS = {}
for _, place in ipairs({ 0, 1, 4, 8, 9, 14, 15, 19, 21, 22, 24, 25, 26, 27, 28, 38, 39, 40, 41, 43, 44, 48, 49 }) do
  SENT_FLAGS[place] = true
end

local EXPEDITED = 45 -- by --requeue=expedite of 25.11 and later

-- Only before 23.02 does Slurm not tell Lua its errors by their names. Of that version the ways in which it reads GPUs and
-- frees a text are known here.
local OF_22_05 = slurm.ESLURM_INVALID_NODE_NAME == nil

-- Cores that are kept for the system: a job that names them gets whole nodes. Slurm tells of them from 26.05 on.
local OF_SYSTEM = { core_spec = "--core-spec", thread_spec = "--thread-spec" }

-- `a100*2` takes two nodes where --nodes says nothing.
local NAMING_NODES = { features = "--constraint", prefer = "--prefer" }

-- Alternatives of a constraint: with node_features/helpers Slurm multiplies all out, while nobody else is answered (measured).
local MOST_WAYS = 250

local function ways_of(text)
  local ways = 1
  for factor in string.gmatch(text, "[^&,]+") do -- Slurm takes a comma for an &
    local _, more = string.gsub(factor, "|", "")
    ways = ways * (more + 1)
  end
  return ways
end

local UNITS = { [""] = 1, k = 1024, m = 1024 ^ 2, g = 1024 ^ 3, t = 1024 ^ 4 }

local function stated(source, field)
  local value = source[field]
  if value == nil or value == "" or value == slurm.NO_VAL or value == slurm.NO_VAL64 then return nil end
  if NARROW[field] and value == slurm.NO_VAL16 then return nil end
  return value
end

local function any(source, fields)
  for _, field in ipairs(fields) do
    if stated(source, field) ~= nil then return field end
  end
  return nil
end

local function positive(value)
  return value ~= nil and value > 0 and value or nil
end

-- A word of gres without the sign that it is one.
local function gres_of(word)
  return (string.gsub(word, "^gres[:/]", ""))
end

-- The number that `gres:gpu:a100:2,gres:gpu:1` or `gres/gpu=2` gives for GPUs; nil where it names none.
local function of_gpus(text)
  if text == nil then return nil end
  local total = nil
  for item in string.gmatch(string.lower(text), "[^,%s]+") do
    local name = gres_of(item)
    if name == "gpu" or string.find(name, "^gpu[:=]") then
      local count, unit = string.match(name, "[:=](%d+)([kmgt]?)$")
      total = (total or 0) + (count ~= nil and tonumber(count) * UNITS[unit] or 1)
    end
  end
  return total
end

-- A list of nodes in which commas stand between names alone: `a[1,3],b` becomes `a[1;3],b`.
local function with_plain_ranges(text)
  return (string.gsub(text, "%[[^%[%]]*%]", function(ranges) return (string.gsub(ranges, "[,%s]", ";")) end))
end

-- The numbers of `3-7` or `7` in brackets, and how wide they are written. Beyond 15 digits adding 1 may change nothing.
local function range_of(text)
  local first, last = string.match(text, "^(%d+)%-?(%d*)$")
  if first == nil or #first > 15 or #last > 15 then error("the numbers of nodes " .. text .. " cannot be read") end
  return tonumber(first), tonumber(last) or tonumber(first), #first
end

-- How many nodes `a,b[1-3,7],c[1-2]x[1-2]` names: a job gets all of them, however few it asks for.
local function count_nodes(text)
  local total = 0
  if string.find(text or "", "[{}]") then error("nodes that a function names, as in feature{a}, cannot be counted") end
  for name in string.gmatch(with_plain_ranges(text or ""), "[^,%s]+") do
    local many = string.lower(name) == "all" and math.huge or 1
    local rest = string.gsub(name, "%[([^%[%]]*)%]", function(ranges)
      local count = 0
      for range in string.gmatch(ranges, "[^;]+") do
        local first, last = range_of(range)
        count = count + math.max(1, last - first + 1)
      end
      many = many * math.max(1, count)
      return ""
    end)
    if string.find(rest, "[%[%]]") then error("the nodes " .. text .. " cannot be read") end
    total = total + many
  end
  return total
end

-- Whether a list names a node twice; it is one that was counted.
local function names_twice(text)
  local seen = {}
  local function add(name)
    local head, ranges, tail = string.match(name, "^([^%[]*)%[([^%]]*)%](.*)$")
    if head == nil then
      local before = seen[name]
      seen[name] = true
      return before
    end
    local twice = false
    for range in string.gmatch(ranges, "[^;]+") do
      local first, last, width = range_of(range)
      local padded = string.format("%%0%dd", width)
      for number = first, last do
        twice = add(head .. string.format(padded, number) .. tail) or twice
      end
    end
    return twice
  end
  local twice = false
  for name in string.gmatch(with_plain_ranges(text), "[^,%s]+") do twice = add(name) or twice end
  return twice
end

local function ceil(value, by)
  return math.ceil(value / by)
end

local function on_cores(cpus)
  return ceil(cpus, THREADS_PER_CORE) * THREADS_PER_CORE
end

-- What shape_of tells, but for CPUs that come with GPUs of several nodes.
local function counted(get)
  local shape = {
    of_job = positive(of_gpus(get("tres_per_job"))),
    of_node = positive(math.max(of_gpus(get("tres_per_node")) or 0, of_gpus(get("gres")) or 0)),
    of_task = positive(of_gpus(get("tres_per_task"))),
    of_socket = positive(of_gpus(get("tres_per_socket"))),
    tasks_per_gpu = positive(get("ntasks_per_tres")) or positive(get("ntasks_per_gpu")),
    tasks_per_node = positive(get("ntasks_per_node")),
    tasks_per_part = positive(get("ntasks_per_socket")) or positive(get("ntasks_per_core")) or positive(get("ntasks_per_board")),
    cpus_per_task = positive(get("cpus_per_task")) or 1,
    cpus_per_gpu = positive(of_gpus(get("cpus_per_tres"))) or not positive(get("cpus_per_task")) and DEFAULT_CPUS_PER_GPU or 0,
    cpus_per_node = get("pn_min_cpus") or 0,
  }
  if shape.of_node and shape.of_task and not shape.tasks_per_node then -- as Slurm itself does then (_test_gres_cnt of its gres.c)
    shape.tasks_per_node = ceil(shape.of_node, shape.of_task)
  end
  if shape.of_task and not positive(get("cpus_per_task")) then -- as sbatch writes those that are asked for
    shape.cpus_per_task = math.max(1, shape.cpus_per_gpu * shape.of_task)
  end
  local named, tasks, limit = positive(get("min_nodes")), positive(get("num_tasks")), positive(get("max_nodes"))
  local guessed, cpus = get("num_tasks_guessed"), get("min_cpus") or 0
  local nodes = named or (shape.of_job and shape.of_node and ceil(shape.of_job, shape.of_node)) or 1
  nodes = math.max(nodes, get("least_nodes") or 1)
  local listed, least, unlisted = count_nodes(get("req_nodes")), nodes, nodes
  nodes = math.max(nodes, listed)
  if not limit and listed > 0 and listed >= (named or 1) then named = nil end -- sbatch says as many where nobody did
  local ranged = limit ~= nil and limit ~= named -- sbatch of 24.11 writes the fewest nodes of tasks by node itself
  if tasks and shape.tasks_per_node and not (named and limit) then
    unlisted = math.max(unlisted, ceil(tasks, shape.tasks_per_node))
    nodes = math.max(nodes, unlisted)
  end
  shape.named_more = listed > least -- all of them: no node has to have a task of its own
  shape.ranged, shape.least_nodes = ranged, least -- of more nodes in a list than -N says, Slurm takes so many
  shape.unlisted_nodes = unlisted
  shape.nodes = nodes
  shape.tasks = tasks or (shape.tasks_per_node or 1) * nodes
  shape.sockets = positive(get("sockets_per_node")) or 1
  shape.of_job_alone = shape.of_job and not (shape.of_node or shape.of_task or shape.of_socket)
  shape.layout = get("sockets_per_node") or get("cores_per_socket") or get("threads_per_core")

  local gpus = shape.of_job or math.max(
    (shape.of_node or 0) * nodes, (shape.of_task or 0) * math.max(shape.tasks, nodes), -- each node has a task
    (shape.of_socket or 0) * nodes * shape.sockets)
  if gpus == 0 and shape.tasks_per_gpu and tasks then gpus = ceil(tasks, shape.tasks_per_gpu) end
  if shape.of_job and shape.of_task and not tasks then gpus = math.max(gpus, shape.of_task * nodes) end -- a task on each
  shape.gpus = gpus
  if shape.tasks_per_gpu and (shape.of_job or shape.of_node) then
    shape.tasks = math.max(tasks or 0, shape.tasks_per_gpu * gpus)
  elseif not tasks and not shape.tasks_per_node and gpus > 0 then
    if shape.tasks_per_gpu then
      shape.tasks = shape.tasks_per_gpu * gpus
    elseif shape.of_job and shape.of_task then
      shape.tasks = ceil(gpus, shape.of_task)
    end
  end
  -- Of GPUs of the job that are not those of its tasks 24.11 and 26.05 give the more of both, or those of fewer (measured).
  -- Where a program of its own says no tasks, they are those of the nodes (measured).
  local all = tasks or shape.tasks_per_node and shape.tasks
  shape.unequal = all and not guessed and shape.of_job and shape.of_task and shape.of_job ~= shape.of_task * all
  shape.even = not tasks and not (shape.tasks_per_gpu or shape.of_task)
  -- Of --gpus with --gpus-per-task and -c the CPUs of all tasks are not told, and 22.05 may give the GPUs of fewer (measured).
  local of_task = positive(get("cpus_per_task")) or 1 -- sbatch knows none that the partition gives
  shape.fewer_tasks = shape.of_task and not get("cpus_per_tres")
    and (shape.of_job and of_task > 1 or not shape.of_job and not guessed and cpus < shape.tasks * of_task)

  local of_gpus_alone = get("cpus_per_tres") and shape.cpus_per_gpu * gpus or 0 -- sbatch of 24.11 writes them into min_cpus
  local most = limit or math.huge
  if tasks and not guessed then most = math.min(most, math.max(tasks, shape.tasks)) end
  if shape.of_node and shape.of_job then
    most = math.min(most, ceil(shape.of_job, shape.of_node))
  elseif shape.of_node and not named and not tasks and not limit and cpus <= math.max(shape.cpus_per_task * nodes, of_gpus_alone) then
    most = math.min(most, nodes)
  else -- every node holds a task, though not always a GPU
    most = math.min(most, math.max(gpus, shape.tasks, (guessed or not tasks) and limit or 0))
  end
  -- All tasks by node are on each node. Only where there are a number of GPUs in all, fewer on each are taken from more.
  local filled = shape.tasks_per_node and (tasks or not shape.tasks_per_gpu) and cpus <= shape.tasks * shape.cpus_per_task
  if filled and not shape.of_job and not ranged then most = math.min(most, nodes) end
  shape.full_nodes = shape.tasks_per_node and (not tasks or not ranged)
  if not tasks and not limit and cpus > math.max(shape.cpus_per_task * (shape.tasks_per_node or 1) * nodes, of_gpus_alone) then
    most = math.max(most, cpus) -- only a program of its own asks so: 24.11 takes nodes for these CPUs (measured)
  end
  shape.most_nodes = math.max(nodes, most)
  -- Slurm gives each node the CPUs of all tasks that may be on it, however few tasks there are.
  shape.tasks_of_node = math.max(shape.tasks_per_node or 0, 1)
  shape.idle_tasks = tasks and shape.tasks < shape.tasks_of_node * nodes
  -- CPUs that no task accounts for may all be on one node.
  local accounted = math.max(shape.tasks * shape.cpus_per_task, tasks and of_gpus_alone or shape.cpus_per_gpu * gpus)
  shape.loose_cpus = not guessed and cpus > accounted and cpus - (least - 1) or 0
  -- With --overcommit, which is not told, CPUs are as many as sockets, cores and threads say, where there is one for each node
  -- (measured on 22.05, with GPUs for each task on further nodes as well).
  local threads = positive(get("threads_per_core")) or 1
  shape.laid_out = cpus <= nodes and shape.sockets * (positive(get("cores_per_socket")) or 1) > 1
  if cpus <= nodes and threads > 1 then
    cpus = threads * nodes
    shape.loose_cpus = math.max(shape.loose_cpus, cpus - (least - 1))
  end
  shape.cpus = math.max(
    shape.tasks * shape.cpus_per_task, shape.cpus_per_gpu * gpus, cpus,
    math.max(shape.cpus_per_node, shape.tasks_of_node * shape.cpus_per_task) * shape.most_nodes)
  return shape
end

-- The fewest GPUs that one node of the job may hold, and the most that the job may get.
local function gpu_bounds(shape)
  local gpus, most = shape.gpus, shape.most_nodes
  if gpus == 0 then return 0, 0 end
  if shape.of_node then
    return shape.of_node, shape.of_job and gpus or math.max(gpus, shape.of_node * most)
  end
  if shape.of_socket and not shape.of_job then -- a node may give fewer than its sockets ask for
    return shape.of_socket, math.max(gpus, shape.of_socket * shape.sockets * most)
  end
  if shape.of_task then
    local as_tasks = shape.cpus_per_node > shape.cpus_per_task * shape.tasks_of_node -- Slurm may count these CPUs as tasks
    local slots = math.max(as_tasks and shape.cpus_per_node or 0, shape.idle_tasks and shape.tasks_of_node or 0)
    if shape.ranged then slots = math.max(slots, shape.tasks_per_node or 0) end
    local of_all = shape.unequal and shape.of_task * shape.tasks or 0
    if slots > 0 then return shape.of_task, math.max(gpus, of_all, shape.of_task * slots * most) end
  end
  local together = (shape.of_task or 1) * (shape.of_task and shape.full_nodes and shape.tasks_per_node or 1)
  if shape.fewer_tasks or shape.unequal then
    return math.min(gpus, shape.of_task), math.max(gpus, shape.unequal and shape.of_task * shape.tasks or 0)
  end
  if most == 1 then return gpus, gpus end
  -- Of tasks with more CPUs than come with the GPUs 24.11 gives more nodes, each with a GPU (measured); so it does of more
  -- tasks than --gpus has GPUs for, by --ntasks-per-gpu or with one on each node of --ntasks-per-node or --ntasks-per-socket.
  local by_cpus = shape.cpus_per_gpu > 0 and ceil(shape.tasks * shape.cpus_per_task, shape.cpus_per_gpu) or 0
  local by_tasks = 0
  if shape.of_job then
    by_tasks = math.max(
      shape.tasks_per_gpu and ceil(shape.tasks, shape.tasks_per_gpu) or 0,
      shape.tasks_per_node and ceil(shape.tasks, shape.tasks_per_node) or 0,
      shape.tasks_per_part and most or 0, -- which nodes they take depends on how these are made
      shape.tasks_per_gpu and shape.loose_cpus > 0 and most or 0) -- 26.05 tells fewer tasks than -n says
  end
  local fewest = math.min(gpus, math.max(together, gpus - (most - 1) * MOST_GPUS_PER_NODE))
  return fewest, math.max(gpus, by_cpus, by_tasks)
end

-- CPUs that Slurm makes of the memory, on each node, where one may have no more than MaxMemPerCPU (measured).
local function cpus_of_memory(get, shape)
  local split, node, cpu = get("max_mem_per_cpu"), get("min_mem_per_node"), get("min_mem_per_cpu")
  if split == nil then return 0 end
  local tasks = shape.tasks_of_node -- which all have as many of them
  return math.max(shape.most_nodes * tasks * ceil(ceil(node or 0, split), tasks), shape.cpus * ceil(cpu or 0, split))
end

-- CPUs of GPUs of the job that lie unevenly: 24.11 and 26.05 give each node those of the node with the most GPUs (measured).
local function uneven_cpus(shape, gpus)
  local first, last = math.max(shape.nodes, 2), math.min(shape.most_nodes, gpus)
  if not shape.of_job_alone or first > last then return 0 end
  local most = 0 -- nodes times the GPUs of the fullest one: largest where these are as many, or where it is full
  for _, nodes in ipairs({ first, math.floor((gpus + 1) / 2), gpus + 1 - MOST_GPUS_PER_NODE, last }) do
    nodes = math.min(math.max(nodes, first), last)
    most = math.max(most, nodes * math.min(MOST_GPUS_PER_NODE, gpus + 1 - nodes))
  end
  return shape.cpus_per_gpu * most
end

-- Nodes, tasks, CPUs and GPUs of a request, and the bounds of what Slurm may do with them. `get` reads a field.
local function shape_of(get)
  local shape = counted(get)
  local _, gpus = gpu_bounds(shape)
  shape.cpus_first = shape.cpus -- a GPU that comes on top brings its own CPUs along, so its share of memory is no larger
  shape.cpus = math.max(shape.cpus, shape.cpus_per_gpu * gpus, uneven_cpus(shape, gpus))
  shape.cpus = math.max(shape.cpus, cpus_of_memory(get, shape))
  return shape
end

local function tasks_on_node(shape)
  if shape.most_nodes == 1 then return shape.tasks end
  if shape.tasks_per_node then return math.min(shape.tasks_per_node, shape.tasks) end
  if shape.even then return ceil(shape.tasks, shape.least_nodes) end
  return math.max(1, shape.tasks - (shape.least_nodes - 1))
end

-- The memory of each CPU that is asked for. Above MaxMemPerCPU Slurm makes several CPUs of each, with whole MB (measured): how
-- much that is, another partition's may make more than the smallest one.
local function of_each_cpu(get)
  local size, most = get("min_mem_per_cpu"), 0
  for _, split in ipairs(size and get("splits") or {}) do
    local parts = ceil(size, split)
    most = math.max(most, ceil(size, parts) * parts)
  end
  return size and math.max(size, most)
end

-- The most memory on one node, and for one GPU, of a request by CPUs.
local function by_cpu(size, shape, fewest)
  local task, tasks = on_cores(shape.cpus_per_task), tasks_on_node(shape)
  local least = math.max(on_cores(shape.cpus_per_node), on_cores(shape.loose_cpus), shape.tasks_of_node * task)
  if shape.most_nodes == 1 then least = math.max(least, on_cores(shape.cpus_first)) end
  local node = size * math.max(tasks * task, least)
  if shape.gpus == 0 then return node, nil end
  local gpu = size * math.max(on_cores(shape.cpus_per_gpu), (shape.tasks_per_gpu or 0) * task)
  local _, most = gpu_bounds(shape)
  local of_all = gpu * (most - fewest * (shape.unlisted_nodes - 1)) -- but for those that are on other nodes, whatever happens
  if shape.most_nodes > 1 and not shape.of_node and not shape.of_socket then
    -- Later versions give each node the CPUs of the one with the most GPUs (measured on 24.11 and 26.05).
    local largest = math.max(1, shape.gpus - fewest * math.max(1, shape.unlisted_nodes - 1))
    gpu = math.max(gpu, size * on_cores(shape.cpus_per_gpu) * largest / fewest)
  end
  if shape.of_task and shape.most_nodes > 1 then
    local idle = (shape.idle_tasks or shape.loose_cpus > 0) and size * least / fewest or 0
    return node, math.max(gpu, size * task / shape.of_task, idle)
  end
  -- Where GPUs are spread, another node has a task; with a layout its CPUs come on top.
  local beside = node
  if not shape.named_more and not shape.of_socket and not shape.layout and fewest < shape.gpus and tasks == shape.tasks and tasks > 1 then
    beside = size * math.max((tasks - 1) * task, least)
  end
  return math.max(node, of_all), math.max(gpu, beside / fewest, node / shape.gpus)
end

local function by_node(size, shape, fewest)
  if shape.gpus == 0 then return size, nil end
  local everywhere = shape.of_node or shape.of_task or shape.of_socket -- each node has GPUs; else some may have none
  local idle = not everywhere and shape.most_nodes > shape.gpus and size * shape.most_nodes / shape.gpus or 0
  return size, math.max(size / fewest, idle)
end

local function as_memory(size)
  if size % 1024 == 0 then return string.format("%.0fG", size / 1024) end
  return string.format("%.0fM", size)
end

local function refuse(found, rule, text, code)
  found[#found + 1] = { rule = rule, text = text, code = code or slurm.ESLURM_ACCOUNTING_POLICY }
end

local function check_size(found, node, gpu, scattered)
  local size, limit = gpu or node, gpu and LIMIT.memory_per_gpu or LIMIT.memory_without_gpus
  if size <= limit then return end
  local what = gpu and "per GPU" or "on a node"
  local line = gpu and REMEDY.memory_per_gpu or REMEDY.memory_without_gpus
  local note = gpu and scattered and " (Slurm may spread the GPUs; --nodes=1 keeps them together)" or ""
  refuse(found, "memory-per-gpu", string.format(
    "%s %s%s is more than %s; write %s", as_memory(size), what, note, as_memory(limit), line))
end

local function check_memory(found, get, shape)
  local line = shape.gpus > 0 and REMEDY.memory_per_gpu or REMEDY.memory_without_gpus
  local node, cpu, gpu = get("min_mem_per_node"), of_each_cpu(get), of_gpus(get("mem_per_tres"))
  if node == nil and cpu == nil and gpu == nil then
    return refuse(found, "memory-per-gpu", "no memory is stated, and the default may be a whole node; write " .. line)
  end
  if node == 0 or cpu == 0 or gpu == 0 then
    return refuse(found, "memory-per-gpu", "a memory size of 0 takes all memory of a node; write " .. line)
  end
  local fewest = gpu_bounds(shape)
  if gpu ~= nil and shape.gpus > 0 then
    check_size(found, nil, gpu, false)
  elseif node ~= nil then
    local on_node, of_gpu = by_node(node, shape, fewest)
    check_size(found, on_node, of_gpu, shape.most_nodes > 1)
  elseif cpu ~= nil then
    local on_node, of_gpu = by_cpu(cpu, shape, fewest)
    check_size(found, on_node, of_gpu, shape.most_nodes > 1)
  else
    refuse(found, "memory-per-gpu", "memory per GPU is stated, but no GPU; write " .. line)
  end
end

-- Slurm looks for `gres` anywhere in a word, and takes signs, blanks and units of several letters for a part of a
-- number (strtoull(3)): `xgres:gpu:8` and `gpu:+8` are eight GPUs, and would not be counted here.
local function is_plain_tres(item)
  local name, taken = string.gsub(item, "^gres[:/]", "")
  if taken == 0 and string.find(item, "gres", 1, true) or string.find(name, "[^%w_.:=/-]") then return false end
  local last = string.match(name, "[:=]([^:=]*)$")
  if last == nil then return true end
  if string.match(last, "^%d+[kmgt]?$") then return #last <= 15 end
  if string.find(last, "^%d+p$") or string.find(last, "^%d+[kmgtp]i?b$") then return false end
  return string.find(last, "^%w") ~= nil
end

-- Whether this Slurm reads as GPUs what is counted as such here. What it does not read it passes over, so that memory would
-- be for GPUs that a job has not; 22.05 knows no other sign than `gres:`, and takes `=` for a part of a name.
local function is_read_as_gpus(word)
  local sign, rest = string.match(word, "^gres([:/])gpu(.*)$")
  if sign == nil or OF_22_05 and (sign == "/" or string.find(rest, "=", 1, true)) then return false end
  local type = string.match(rest, "^:([%w_.-]+)$") or string.match(rest, "^:([%w_.-]+)[:=]%d+[kmgtKMGT]?$")
  return rest == "" or type ~= nil or string.find(rest, "^[:=]%d+[kmgtKMGT]?$") ~= nil
end

-- The number by which Slurm tells types of GPUs apart, of the letters of a name: gres_build_id of its gres.c.
local function number_of(type)
  local sum = 0
  for place = 1, #type do sum = (sum + string.byte(type, place) * 256 ^ ((place - 1) % 4)) % 2 ^ 32 end
  return sum
end

-- The type of GPUs that a word names, by its number; 0 where it names none, -1 where Slurm takes its name for none, and nil
-- where it is of no GPUs.
local function type_of_gpus(word)
  local kind = string.gsub(gres_of(word), "[:=]%d+[kmgtKMGT]?$", "")
  if string.lower(kind) == "gpu" then return 0 end
  local type = string.match(kind, "^[gG][pP][uU][:=](.*)$")
  local number = type and number_of(type)
  return number == 0 and -1 or number
end

-- Of `gpu:a100:1,gpu:a100:1` the last counts, so that memory is for one GPU and not for two; so it does of two names that
-- Slurm takes for one.
local function is_named_again(word, types)
  local type = type_of_gpus(word)
  if type == nil then return false end
  local again = type == -1 or types[type] or types[0] or type == 0 and next(types) ~= nil
  types[type] = true
  return again
end

-- The types of GPUs that a text names, in one order.
local function types_of_gpus(text)
  local types = {}
  for word in string.gmatch(text or "", "[^,%s]+") do types[#types + 1] = type_of_gpus(word) end
  table.sort(types)
  return table.concat(types, ",")
end

-- GPUs of different types count for themselves, whichever option names them: two of these add up.
local function check_types_of_gpus(found, get)
  local first = nil
  for _, field in ipairs(OF_GRES) do
    local named = types_of_gpus(get(field))
    first = first or (named ~= "" and named) or nil
    if named ~= "" and named ~= first then
      return refuse(found, "gpus", "GPUs of different types in two options add up; name all by one option")
    end
  end
end

-- GPUs for each socket: Slurm may give those of more sockets of a node than the job names (measured), up to all of them.
local function check_sockets(found, get)
  if get("tres_per_socket") ~= nil then
    refuse(found, "gpus", "GPUs for each socket may be more than they show; write " .. REMEDY.gpus)
  end
end

-- Of a range of nodes Slurm chooses how many. With --distribution=plane, which is not told here, 22.05 puts the CPUs of all
-- on one of them and takes the others whole; tasks for each GPU bring a CPU for each node beyond the fewest (measured).
local function check_range(found, get, shape)
  local named, limit = positive(get("min_nodes")) or 1, positive(get("max_nodes"))
  if shape.gpus > 0 and (limit or 1) > named then
    refuse(found, "directives", "GPUs on a range of nodes may come with more than they show; write --nodes with one number")
  end
  -- 24.11 and 26.05, with --distribution=plane: memory and CPUs of a further node, and none of the GPUs. sbatch and salloc see
  -- to it where a number of nodes is named.
  local least, tasks = get("least_nodes") or 1, not get("num_tasks_guessed") and positive(get("num_tasks")) or 1
  if tasks > 1 and least > named then
    refuse(found, "directives", string.format("the partition gives %.0f nodes at least, and tasks may be on some of them; write --nodes", least))
  end
  if shape.gpus > 0 and get("threads_per_core") and limit == nil and shape.most_nodes > math.max(named, least) then
    refuse(found, "directives", "GPUs with --threads-per-core, or --hint=nomultithread, may come on more nodes than one; write --nodes")
  end
end

-- With --distribution=arbitrary 26.05 takes such a list as tasks on nodes: 40 times one node, and memory of each CPU is that
-- of forty (measured).
local function check_listed(found, nodes)
  if nodes and names_twice(nodes) then
    refuse(found, "directives", "the list names a node twice; name each node once")
  end
end

-- Whether Slurm makes CPUs of the memory where this is the most of a CPU: memory of each GPU counts as that of a node then.
local function brings_cpus(get, split)
  local node = get("min_mem_per_node")
  return split ~= nil and get("min_mem_per_cpu") == nil and (node == nil or node == 0 or node > split)
end

-- The slurmctld lays each of them out when the job starts, and answers nobody meanwhile: of 200,000 tasks on two nodes, which
-- need no CPU with --overcommit, that of 26.05 never ends (measured), as it counts those of a node with 16 bits.
local MOST_TASKS = 65533

-- Options and fields of which Slurm gives more together than is counted of each (measured, in the versions that stand
-- behind them). Tasks for each GPU beside GPUs for each task, and more CPUs, only a program of its own asks for.
local function check_together(found, get, shape)
  if shape.tasks_per_part and shape.gpus > 0 and (shape.cpus_per_gpu > 0 or get("min_mem_per_cpu")) then -- 24.11, 26.05
    refuse(found, "directives", "tasks for each socket or core bring CPUs for each GPU; ask with --ntasks-per-node")
  end
  if shape.cpus_per_gpu > 0 and string.find(string.lower(get("tres_per_task") or ""), "gpu[:=]%d*[^%d,]") then -- 22.05
    refuse(found, "gpus", "GPUs of a type for each task with CPUs for each GPU may be more; write " .. REMEDY.gpus)
  end
  -- With --overcommit and --distribution=plane 22.05 then gives such a job its memory, or no limit of it, and no GPU; and its
  -- slurmctld ends when a step is started in it (measured).
  if OF_22_05 and shape.of_task and math.max(shape.cpus_per_task, shape.cpus_per_gpu * shape.of_task) > 1 then
    refuse(found, "gpus", "this Slurm may give no GPUs for each task where it has several CPUs; write --gpus-per-node=N")
  end
  if shape.tasks > MOST_TASKS then
    refuse(found, "directives", string.format("there are more than %d tasks; ask for fewer", MOST_TASKS))
  end
  check_range(found, get, shape)
  check_listed(found, get("req_nodes"))
  if shape.laid_out then
    refuse(found, "directives", "--sockets-per-node and --cores-per-socket make a job larger than it shows; ask with --ntasks and --cpus-per-task")
  end
  if get("max_cpus") then refuse(found, "directives", "no command of Slurm's sends max_cpus") end
  local tasks, cpus = positive(get("num_tasks")), get("min_cpus") or 0
  local stated_gpus = shape.of_job or shape.of_node or shape.of_task or shape.of_socket
  if tasks and not shape.tasks_per_gpu and tasks < (positive(get("min_nodes")) or 1) then -- of which some would have no task
    refuse(found, "directives", "there are fewer tasks than nodes; no command of Slurm's sends that")
  end
  if positive(of_gpus(get("cpus_per_tres"))) and not stated_gpus and not shape.tasks_per_gpu then -- 22.05, with --distribution=plane
    refuse(found, "gpus", "CPUs for each GPU stand beside no GPUs, and a node may give them for all it has; leave --cpus-per-gpu out, or write " .. REMEDY.gpus)
  end
  -- 22.05 rounds them down, 24.11 and 26.05 count them anew when the job is released, and a change takes them off.
  if shape.tasks_per_gpu and not stated_gpus then
    refuse(found, "gpus", "tasks for each GPU stand beside no number of GPUs; write " .. REMEDY.gpus)
  end
  if tasks and shape.tasks_per_node and (shape.of_task or shape.tasks_per_gpu) then -- either may count once it is released
    local named, limit = positive(get("min_nodes")), positive(get("max_nodes"))
    local nodes = named and named == limit and named or math.max(named or 1, ceil(tasks, shape.tasks_per_node))
    if tasks ~= nodes * shape.tasks_per_node then
      refuse(found, "gpus", "--ntasks is not --ntasks-per-node on each of the nodes, and GPUs go with tasks; leave one out")
    end
  end
  local guessed = get("num_tasks_guessed")
  local limit = positive(get("max_nodes")) -- of more nodes than GPUs sbatch of 22.05 says that there may be fewer than -N
  local places = limit and (shape.tasks_per_node or 0) * math.max(limit, positive(get("min_nodes")) or 1) or 0
  local crowded = tasks and not guessed and places > 0 and tasks > places
  if crowded and shape.of_job_alone and shape.cpus_per_gpu > 0 then -- 26.05, with --distribution=plane
    refuse(found, "gpus", "there are more --ntasks than --ntasks-per-node has place for, and CPUs go with GPUs; leave one out")
  end
  if shape.of_job and shape.of_task and not tasks then -- 26.05 gave one GPU of four, and all memory
    refuse(found, "gpus", "GPUs of the job and of each task stand beside no number of tasks; no command of Slurm's sends that")
  end
  if tasks and shape.unequal and not shape.tasks_per_node then -- 24.11, 26.05: the more of both, or more
    refuse(found, "gpus", "GPUs of the job are not those of its tasks; no command of Slurm's sends that")
  end
  local even = shape.nodes == shape.most_nodes and shape.tasks == shape.nodes * (shape.tasks_per_node or 1)
  local uneven = shape.most_nodes > 1 and shape.tasks > 1 and not even and not guessed
  if shape.of_task and shape.cpus_per_gpu > 0 and uneven then -- 26.05: one node got the CPUs of others' tasks
    refuse(found, "gpus", "GPUs of tasks lie unevenly on several nodes, and CPUs go with them; write --ntasks-per-node too, or " .. REMEDY.gpus)
  end
  local split, cpu = get("max_mem_per_cpu"), get("min_mem_per_cpu")
  local of_no_task = shape.loose_cpus > 0 and cpus > shape.cpus_per_gpu * shape.gpus -- which only a program of its own sends
  if of_no_task and shape.gpus > 0 and not shape.tasks_per_gpu and shape.most_nodes > 1 then -- 26.05, with --distribution=plane: a node without a GPU
    refuse(found, "directives", "there are more CPUs than those of the tasks and GPUs; ask with --ntasks and --cpus-per-task")
  end
  -- 22.05 puts each on a node of its own, with more; of several nodes each is asked for the memory of all of them.
  if split and cpu and of_no_task and (cpu > split or shape.most_nodes > 1) then
    refuse(found, "directives", "there are more CPUs than those of the tasks, and MaxMemPerCPU makes more of their memory; ask with --ntasks and --cpus-per-task")
  end
  if shape.of_task and brings_cpus(get, split) then -- 22.05, and by its source 24.11
    refuse(found, "gpus", "Slurm makes CPUs of memory above MaxMemPerCPU, and tasks with GPUs of those; ask with --gpus-per-node")
  end
  if split and of_gpus(get("mem_per_tres")) and not positive(get("min_mem_per_node")) then -- 22.05
    refuse(found, "memory-per-gpu", "memory of each GPU brings all CPUs of a node where MaxMemPerCPU is set; write --mem=SIZE in its place")
  end
  local all_on_one = shape.tasks_per_gpu or OF_22_05 and shape.cpus_per_gpu > 0 -- with --overcommit
  local bare_nodes = shape.of_job_alone and (all_on_one and shape.nodes > 1 or shape.gpus < shape.nodes)
  if bare_nodes and of_gpus(get("mem_per_tres")) then -- 22.05: a node without a GPU has no limit of memory
    refuse(found, "memory-per-gpu", "memory of each GPU bounds nothing on a node without one; ask with --gpus-per-node")
  end
  if shape.tasks_per_gpu and shape.of_task then -- all versions
    refuse(found, "gpus", "tasks for each GPU and GPUs for each task may be more together; write " .. REMEDY.gpus)
  end
  if tasks and shape.of_job and shape.of_node and tasks < ceil(shape.of_job, shape.of_node) then -- 24.11
    refuse(found, "gpus", "there are fewer tasks than nodes that the GPUs take; write " .. REMEDY.gpus)
  end
  local of_nodes = shape.tasks_per_gpu and shape.of_node and not shape.of_job
  local held = of_nodes and shape.tasks_per_gpu * shape.of_node * (positive(get("min_nodes")) or 1)
  if held and tasks and tasks > held and not guessed then -- 24.11, 26.05: a node without a GPU
    refuse(found, "gpus", "there are more tasks than GPUs for them on the nodes; say with --nodes how many there are")
  end
  local by_tasks = shape.of_task or of_nodes or shape.tasks_per_gpu and not tasks
  if by_tasks and cpus > shape.tasks * shape.cpus_per_task then -- 22.05; of tasks for each GPU 24.11 and 26.05
    refuse(found, "gpus", "there are more CPUs than those of the tasks, and may be GPUs for them; write " .. REMEDY.gpus)
  end
end

-- Words that Slurm may count otherwise than they are counted here. Parts of GPUs count as none in every limit. Of two
-- sizes of memory, which no command of Slurm's sends, a GPU of another type may get the one that is not looked at.
local function check_words_of_gpus(found, source)
  if stated(source, "mem_per_tres") and any(source, { "min_mem_per_node", "min_mem_per_cpu" }) then
    refuse(found, "memory-per-gpu", "memory is stated twice; write " .. REMEDY.memory_per_gpu)
  end
  for _, field in ipairs({ "mem_per_tres", "cpus_per_tres" }) do
    for item in string.gmatch(string.lower(stated(source, field) or ""), "[^,]+") do
      local name = gres_of(item)
      if name ~= "gpu" and not string.find(name, "^gpu[:=]%d+[kmgt]?$") then -- of one type it is not for a GPU of another
        refuse(found, "memory-per-gpu", item .. " is not for every GPU; write " .. REMEDY.memory_per_gpu)
        break
      end
    end
  end
  if source.tres_per_task == "" or of_gpus(stated(source, "tres_per_task")) == 0 then -- by a text of none 22.05 gives all CPUs
    refuse(found, "gpus", "tres_per_task is for nothing; leave it out")
  end
  for _, field in ipairs(COUNTED) do
    local text, types = stated(source, field) or "", {}
    for word in string.gmatch(text, "[^,]+") do
      local item = string.lower(word)
      local unread = of_gpus(item) and not is_read_as_gpus(word)
      if not is_plain_tres(item) or is_named_again(word, types) or unread then
        refuse(found, "gpus", item .. " does not say plainly how much it asks for; write " .. REMEDY.gpus)
        break -- a line for each of thousands would keep the controller from everybody else
      end
      if NO_OTHERS[field] and string.find(item, "^gres") and not of_gpus(item) then
        refuse(found, "gres", item .. " may bring nodes or tasks; gres that are no GPUs are asked for with --gres")
        break
      end
    end
    for name in string.gmatch(text, "[^,:/=%s]+") do
      if name == "shard" or name == "mps" then
        refuse(found, "gpus", "parts of GPUs (" .. name .. ") cannot be counted; write " .. REMEDY.gpus)
        break
      end
    end
  end
end

-- The partitions that a job names, or else the default one; with a reservation it may be any.
local function partitions_of(parts, names, reserved)
  local found, seen = {}, {}
  local function add(part) -- one that is down or drains hands its jobs to another one (measured)
    while part and not seen[part] do
      found[#found + 1], seen[part] = part, true
      part = parts[part.alternate or ""]
    end
  end
  if names ~= nil then
    for name in string.gmatch(names, "[^,%s]+") do add(parts[name]) end
  else
    for _, part in pairs(parts) do
      if reserved or part.flag_default == 1 then add(part) end
    end
  end
  return found
end

-- A partition that a job names, or comes to where another drains, and that is not told here. Where groups of a directory are
-- not listed, Slurm finds only later that AllowGroups allows the user.
local function untold_of(parts, names)
  local default = names == nil
  for _, part in ipairs(partitions_of(parts, names)) do
    default = false
    if stated(part, "alternate") and not parts[part.alternate] then
      return string.format("%s (the Alternate of %s)", part.alternate, part.name)
    end
  end
  for name in string.gmatch(names or "", "[^,%s]+") do
    if parts[name] == nil then return name end
  end
  return default and "the default partition" or nil
end

-- Of a list of which some give whole nodes and others do not, Slurm gives whole nodes of all, once it has looked at the first.
-- It looks at those as well where the user may not run, and of which nothing is told here (measured).
local function check_mixed(found, parts, names)
  local whole, shared, named = false, false, 0
  for name in string.gmatch(names or "", "[^,%s]+") do
    named = named + 1
    for _, part in ipairs(partitions_of(parts, name)) do -- one that drains hands its place in the list on
      whole, shared = whole or part.max_share == 0, shared or part.max_share ~= 0
    end
  end
  if named < 2 then return end -- of one name it is one of both
  local untold = untold_of(parts, names)
  if untold then
    refuse(found, "partition", "what " .. untold .. " gives is not told for this user; leave it out")
  elseif whole and shared then
    refuse(found, "partition", names .. " are partitions of whole nodes and others; name those that give whole nodes, or none of them")
  end
end

-- Of these, the one that gives whole nodes (its max_share is 0 with OverSubscribe=EXCLUSIVE, and with Exclusive=NODE of
-- 26.05) and has the most CPUs on each. A job has all CPUs and GPUs of a node there, whatever it asks for.
local function whole_nodes_of(parts, names, reserved)
  local largest = nil
  for _, part in ipairs(partitions_of(parts, names, reserved)) do
    local cpus = ceil(part.total_cpus or 0, math.max(1, part.total_nodes or 1))
    if part.max_share == 0 and (largest == nil or cpus > largest.cpus) then largest = { name = part.name, cpus = cpus } end
  end
  return largest
end

-- Memory of a node is what is asked there, but memory for each CPU and each GPU is given for all of the node. How many
-- GPUs a node has is not told here: a job without any is counted without, and one that asks for some by the site's word.
local function take_whole_nodes(found, get, shape, whole)
  if get("min_mem_per_cpu") ~= nil then
    refuse(found, "memory-per-gpu", string.format(
      "partition %s gives whole nodes, and memory for each CPU for all their CPUs; write %s", whole.name,
      shape.gpus > 0 and REMEDY.memory_per_gpu or REMEDY.memory_without_gpus))
  end
  shape.cpus = math.max(shape.cpus, whole.cpus * shape.most_nodes)
  if shape.gpus > 0 and MOST_GPUS_PER_NODE < math.huge then
    shape.whole_gpus = MOST_GPUS_PER_NODE * shape.most_nodes
  end
end

-- The fewest nodes that these partitions give, whatever a job asks for: the largest of their MinNodes.
local function least_of(parts, names, reserved)
  local least = 1
  for _, part in ipairs(partitions_of(parts, names, reserved)) do least = math.max(least, part.min_nodes or 1) end
  return least
end

-- Of a list of reservations without a partition Slurm looks at those of all, and whole nodes stay (measured on 22.05). With one,
-- how many nodes the partition gives, and so how many tasks there are, is not known.
local function check_reservations(found, job, parts)
  local names = stated(job, "reservation")
  if names == nil or stated(job, "partition") ~= nil then return end
  if string.find(names, ",", 1, true) or least_of(parts, nil, names) > 1 then
    refuse(found, "partition", "name the partition: with a reservation it may be any")
  end
end

-- MaxMemPerCPU of these partitions, the smallest first, in MB.
local function splits_of(parts, names, reserved)
  local sizes = {}
  for _, part in ipairs(partitions_of(parts, names, reserved)) do sizes[#sizes + 1] = positive(part.max_mem_per_cpu) end
  table.sort(sizes)
  return sizes
end

-- The same request, which tells as well how many nodes the partitions give at least, and the most memory of a CPU there.
local function at_least(get, least, splits)
  return function(field)
    if field == "least_nodes" then return least end
    if field == "max_mem_per_cpu" then return splits[1] end
    if field == "splits" then return splits end
    return get(field)
  end
end

local function most_gpus(shape)
  local _, most = gpu_bounds(shape)
  return math.max(most, shape.whole_gpus or 0)
end

local function check_gpus(found, shape)
  local most = most_gpus(shape)
  if most <= LIMIT.gpus then return end
  local count = most == math.huge and "an open number of" or string.format("%.0f", most)
  local note = most > shape.gpus and " on all the nodes that Slurm may take (--nodes=1 keeps it to one)" or ""
  if shape.whole_gpus and shape.most_nodes == 1 then note = " of a whole node, which this partition gives," end
  local _, asked = gpu_bounds(shape)
  local mend = asked <= LIMIT.gpus and "name a partition that shares its nodes" or "write " .. REMEDY.gpus
  refuse(found, "gpus", string.format("%s GPUs%s are more than %d; %s", count, note, LIMIT.gpus, mend))
end

local function check_time(found, minutes)
  if minutes == nil then
    refuse(found, "time-limit", "no time limit is stated; write " .. REMEDY.time, slurm.ESLURM_INVALID_TIME_LIMIT)
  elseif minutes > LIMIT.time then
    refuse(found, "time-limit", string.format("the time limit is more than %s; write %s", REMEDY.most_time, REMEDY.time),
      slurm.ESLURM_INVALID_TIME_LIMIT)
  end
end

local function check_exclusive(found, shared)
  if shared ~= nil and shared ~= 1 then
    refuse(found, "directives", "whole nodes (--exclusive) take more than they show; leave --exclusive out")
  end
end

-- A number here is exact up to 2^53: beside a higher flag the lower ones are lost.
local function has_flag(source, flag)
  local flags = source.bitflags or 0
  if flags >= 2 ^ 53 then error("the flags of this job cannot be read") end
  return math.floor(flags / flag) % 2 == 1
end

-- Of nodes that are named Slurm 22.05 takes all that are between them as well (measured).
local function takes_between(source)
  return (stated(source, "contiguous") or 0) ~= 0 and stated(source, "req_nodes") ~= nil
end

-- What such a job has becomes another's by a change of its own to no nodes (with permit_job_expansion, measured on 26.05).
local function adds_to_a_job(source)
  return string.find(string.lower(stated(source, "dependency") or ""), "expand", 1, true) ~= nil
end

local function check_flags(found, source)
  if has_flag(source, 2 ^ EXPEDITED) then
    return refuse(found, "auto-retry", "no job is started again by itself; leave --requeue=expedite out")
  end
  for place = 0, 52 do
    if has_flag(source, 2 ^ place) and not SENT_FLAGS[place] then
      return refuse(found, "directives", string.format("no command of Slurm's sends flag %d of a job", place))
    end
  end
end

-- squeue writes 24 letters for each to everybody who asks: 78 MB for 4,000 jobs that each wait for 800.
local MOST_DEPENDENCIES = 100

-- Options by which a job takes more than it shows, beside --exclusive, with a ticket too.
local function check_hidden(found, source)
  check_flags(found, source)
  if has_flag(source, SPREAD_JOB) then
    refuse(found, "directives", "--spread-job takes more nodes than it shows; ask with --nodes and --ntasks")
  end
  if has_flag(source, ENFORCE_BINDING) then
    refuse(found, "directives", "--gres-flags=enforce-binding takes more CPUs than it shows; leave it out")
  end
  if select(2, string.gsub(stated(source, "dependency") or "", ":", "")) > MOST_DEPENDENCIES then
    refuse(found, "dependency", string.format("waits for more than %d jobs; let one job wait for them", MOST_DEPENDENCIES))
  end
  if adds_to_a_job(source) then
    refuse(found, "dependency", "--dependency=expand adds to another job; ask for all of it in one job")
  end
  for field, option in pairs(NAMING_NODES) do
    local text = stated(source, field) or ""
    if string.find(text, "*", 1, true) then
      refuse(found, "directives", option .. " with a number of nodes takes more than it shows; ask with --nodes")
    end
    if ways_of(text) > MOST_WAYS then
      refuse(found, "directives", option .. " has more alternatives than are looked through; ask for fewer")
    end
  end
  if (stated(source, "contiguous") or 0) > 1 then -- with which no slurmctld reads its jobs again when it starts (measured)
    refuse(found, "directives", "no command of Slurm's sends such a number for --contiguous")
  end
  if takes_between(source) then
    refuse(found, "directives", "--contiguous with --nodelist takes all nodes between those named; leave one out")
  end
  for field, option in pairs(OF_SYSTEM) do
    if stated(source, field) ~= nil then
      refuse(found, "directives", option .. " takes whole nodes, which it does not show; leave it out")
    end
  end
end

-- How many tasks `0-99:2,200%4` names, and its throttle.
local function read_array(text)
  local plain, throttle = string.match(text, "^([^%%]*)%%(%d+)%]?$")
  local total = 0
  for item in string.gmatch((string.gsub(plain or text, "[%[%]]", "")), "[^,]+") do
    local first, last, step = string.match(item, "^(%d+)%-(%d+):?(%d*)$")
    if first ~= nil then
      total = total + math.floor((tonumber(last) - tonumber(first)) / math.max(1, tonumber(step) or 1)) + 1
    elseif string.match(item, "^%d+$") then
      total = total + 1
    else
      error("the array " .. text .. " cannot be read")
    end
  end
  return math.max(1, total), tonumber(throttle or 0) -- of a list without a task Slurm makes one job (measured)
end

local function check_array(found, tasks, throttle)
  local at_once = throttle > 0 and math.min(throttle, tasks) or tasks
  if at_once <= LIMIT.jobs then return end
  refuse(found, "concurrent-jobs", string.format(
    "more than %d tasks of the array may run at once; end --array with %%%d, as in --array=0-99%%%d",
    LIMIT.jobs, LIMIT.jobs, LIMIT.jobs))
end

local function check_hours(found, what, count, minutes, tasks)
  local limit, hours = LIMIT[what .. "_hours"], count * (minutes or 0) / 60 * tasks
  if limit ~= nil and hours > limit then
    refuse(found, "budget", string.format(
      "%.1f %s hours are more than %g; ask for less of them, less time or fewer array tasks",
      hours, string.upper(what), limit))
  end
end

local function reader_of(job)
  for _, field in ipairs(EXPECTED) do
    if type(job[field]) ~= "number" then error("this Slurm does not tell " .. field) end
  end
  for _, field in ipairs(NEVER_ZERO) do
    if job[field] == 0 then error(field .. " is 0") end
  end
  local get = function(field) return stated(job, field) end
  if get("pn_min_memory") and not get("min_mem_per_node") and not get("min_mem_per_cpu") then
    error("this Slurm does not tell the memory")
  end
  return get
end

local function asked_of(job, parts)
  local names, reserved = stated(job, "partition"), stated(job, "reservation")
  return at_least(reader_of(job), least_of(parts, names, reserved), splits_of(parts, names, reserved))
end

-- The largest MaxNodes of the partitions of a job: with more in it the job waits there for ever.
local function most_nodes_of(parts, job)
  local most = 0
  for _, part in ipairs(partitions_of(parts, stated(job, "partition"), stated(job, "reservation"))) do
    most = math.max(most, part.max_nodes or math.huge)
  end
  return most > 0 and most or math.huge
end

-- With --distribution=plane and --overcommit tasks of which Slurm knows no number, or fewer than it gives nodes for MinNodes or
-- for a list, may all be on one node: the others have no GPUs of theirs and memory all the same, or no limit of memory
-- (measured). A number that is told is held on every node. Nil where nothing is to be told.
local function tasks_to_tell(job, parts)
  local get = asked_of(job, parts)
  if math.max(get("min_nodes") or 1, get("least_nodes")) == 1 and not get("req_nodes") then return nil end
  local shape, tasks = shape_of(get), positive(get("num_tasks"))
  if shape.nodes == 1 or (positive(get("max_nodes")) or shape.nodes) ~= shape.nodes then return nil end
  return (shape.even or tasks and tasks < shape.nodes) and math.max(shape.tasks, shape.nodes) or nil
end

-- Slurm takes no more nodes than were counted: of --gpus 24.11 else takes as many as it likes, some without a GPU, where
-- --distribution names a way for sockets, which is not told here; so it does of --ntasks-per-node with --overcommit and a
-- layout of cores, and of a range with --distribution=plane (measured). With plane Slurm also puts more tasks on a node than
-- --ntasks-per-node says, or than one for each node where nothing says how many, each with its memory: of a node that has as
-- many as were counted, or GPUs of its own, the memory is asked for the node instead.
local function keep_to_counts(job, parts)
  local limit, cpu = stated(job, "max_nodes"), stated(job, "min_mem_per_cpu")
  local get = asked_of(job, parts)
  local least = math.max(stated(job, "min_nodes") or 1, get("least_nodes"))
  local ranged = limit ~= nil and limit > least
  local brought = stated(job, "cpus_per_tres") and not positive(stated(job, "num_tasks")) -- CPUs of which no task says where they are
  local untold = untold_of(parts, stated(job, "partition")) -- which may have MinNodes
  local others = brought or untold or stated(job, "threads_per_core")
  local even = cpu and not positive(stated(job, "num_tasks"))
  if not (stated(job, "tres_per_job") or stated(job, "ntasks_per_node") or ranged or others or even) then return end
  local shape = shape_of(get)
  local open = ranged or limit == nil and (shape.of_job or shape.tasks_per_node or others)
  if open and (limit or math.huge) > shape.most_nodes and shape.most_nodes < 1e9 then
    job.max_nodes = math.max(math.min(shape.most_nodes, most_nodes_of(parts, job)), least)
  end
  if cpu and (shape.tasks_per_node and (shape.gpus == 0 or shape.of_node) or shape.even) and shape.most_nodes > 1 then
    local fewest = gpu_bounds(shape)
    local node, gpu = by_cpu(cpu, shape, fewest)
    job.min_mem_per_node = math.ceil(gpu and math.min(node, gpu * (shape.of_node or fewest)) or node) -- no more than was judged
  end
end

local function refuse_parts(found, job)
  if job.cron_job then -- its offset stands there as well
    return refuse(found, "directives", "what scrontab sends runs again and again by itself; submit one job with sbatch")
  end
  refuse(found, "directives", "the parts of a heterogeneous job add up; submit them as one plain job")
end

-- Slurm refuses what is longer, but only after this file has read it, and nobody else is answered meanwhile.
local LONGEST = { comment = 1024, array_inx = 4096, dependency = 4096, req_nodes = 65536, exc_nodes = 65536 }
for _, field in ipairs(COUNTED) do LONGEST[field] = 1024 end
for _, field in ipairs({ "partition", "qos", "account", "licenses", "reservation", "features", "prefer" }) do
  LONGEST[field] = 1024
end

-- `scontrol show job` prints these as they are, so that a line in them looks like a line, or a job, of Slurm's own.
local ON_ONE_LINE = {
  "comment", "name", "wckey", "std_in", "std_out", "std_err", "work_dir", "mail_user", "licenses", "features", "network",
}
for _, field in ipairs(ON_ONE_LINE) do LONGEST[field] = 1024 end
for _, field in ipairs({ "std_in", "std_out", "std_err", "work_dir", "container", "extra" }) do LONGEST[field] = 4096 end

-- 22.05 tells everybody who lists jobs all arguments of each: of a thousand jobs with a megabyte nobody reads any (measured).
-- These are 16 KB and the path of the script.
local MOST_ARGUMENTS = 20480

local function too_many_arguments(job, sent)
  local total, count = 0, job.argc or 0
  if count > MOST_ARGUMENTS then return true end
  for _, text in pairs(count > 0 and job.argv or {}) do total = total + #text end
  if total > MOST_ARGUMENTS then sent.letters = sent.letters + total end
  return total > MOST_ARGUMENTS
end

-- Names of nodes in one list, and of one user's lists in a second: for each that it does not know Slurm writes two lines, and
-- nobody else is answered; a change of an array is made, and asked about here, for each of its tasks that had one before. For
-- brackets it takes the square of the time, and of many the slurmctld of 22.05 and 24.11 ends (measured).
local MOST_NAMES, MOST_BRACKETS, MOST_IN_A_SECOND, MOST_LETTERS = 5000, 200, 20000, 2 ^ 20
local MOST_IN_A_NAME = 5 -- brackets: Slurm knows no more dimensions, and each makes a copy of all names
local LONGEST_NAME = 64 -- of a machine: thousands that are longer fill the controller's log, and Lua 5.1 does not tell them apart
local MOST_REFUSED = 20 -- changes: one of an array is asked about here for each of its tasks, and nobody else is answered
local lately = {}

-- What a user sent in this second: names of nodes, letters of texts that were too long, changes that were refused, beyond
-- which none is read, and lines of the log about it.
local function of_this_second(uid)
  local now = os.time()
  if lately.second ~= now then lately = { second = now } end
  lately[uid] = lately[uid] or { names = 0, letters = 0, refused = 0, lines = 0 }
  return lately[uid]
end

local function longest_number(ranges)
  local longest = ""
  for number in string.gmatch(ranges, "%d+") do
    if #number > #longest then longest = number end
  end
  return longest
end

-- Why a name in a list, with its longest numbers, is none of a machine; nil where all may be, and the most brackets of one.
local function no_name_of_a_machine(text)
  local most = 1
  for name in string.gmatch(with_plain_ranges(text), "[^,%s]+") do
    local whole, brackets = string.gsub(name, "%[([^%[%]]*)%]", longest_number)
    if #whole > LONGEST_NAME then return string.format("has a name longer than %d letters", LONGEST_NAME) end
    if brackets > MOST_IN_A_NAME then return string.format("has a name with more than %d brackets", MOST_IN_A_NAME) end
    most = math.max(most, brackets)
  end
  return nil, most
end

local function too_many_names(sent, text)
  if sent.names > MOST_IN_A_SECOND then return "is one of many long lists in a second; wait a second" end
  local _, brackets = string.gsub(text, "%[", "")
  local _, many = string.gsub(text, ",", "") -- counted by themselves these would take longest
  local wrong, copies = brackets > MOST_BRACKETS and string.format("has more than %d brackets", MOST_BRACKETS), 1
  if not wrong and many <= MOST_NAMES then wrong, copies = no_name_of_a_machine(text) end
  sent.names = sent.names + many -- at once, as an error ends it where they cannot be read
  if not wrong and many <= MOST_NAMES then
    local commas = many
    many = count_nodes((string.gsub(text, "{[^{}]*}", "")))
    sent.names = sent.names + many - commas
  end
  return wrong or many * copies > MOST_NAMES and string.format("names more than %d nodes", MOST_NAMES)
    or sent.names > MOST_IN_A_SECOND and "is one of many long lists in a second; wait a second"
end

-- What is too long in a job or a change; nil where nothing is.
local function too_long(job, sent)
  for field, most in pairs(LONGEST) do
    local text = job[field]
    if type(text) == "string" and #text > most then
      sent.letters = sent.letters + #text
      return string.format("%s is longer than %d letters", field, most)
    end
  end
  if too_many_arguments(job, sent) then
    return string.format("the arguments of the script are longer than %d letters; write them into a file", MOST_ARGUMENTS)
  end
  for _, field in ipairs({ "req_nodes", "exc_nodes" }) do
    local text = job[field]
    local much = text and text ~= "" and too_many_names(sent, text)
    if much then return field .. " " .. much end
  end
  return nil
end

local function check_length(job, uid)
  local sent = of_this_second(uid)
  if sent.letters > MOST_LETTERS then
    return { { rule = "directives", text = "texts before it in this second were too long; wait a second" } }
  end
  local long = too_long(job, sent)
  if long then return { { rule = "directives", text = long } } end
  for _, field in ipairs(ON_ONE_LINE) do
    if string.find(job[field] or "", "[\n\r\v\f]") then
      return { { rule = "directives", text = field .. " has a line break; leave it out" } }
    end
  end
  if string.find(job.partition or "", "^[,%s]+$") then -- to 26.05 the default one (measured)
    return { { rule = "partition", text = "the list of partitions names none" } }
  end
  return nil
end

-- Under a QOS with PartitionTimeLimit Slurm takes a --time-min above --time, and its backfill gives so much (measured).
local function minutes_of(get)
  local limit, least = get("time_limit"), get("time_min")
  return limit and least and math.max(limit, least) or limit
end

local function judge_submission(job, parts)
  local found, get = {}, asked_of(job, parts)
  local shape, minutes, tasks, throttle = shape_of(get), minutes_of(get), 1, 0
  local whole = whole_nodes_of(parts, get("partition"), get("reservation"))
  if whole then take_whole_nodes(found, get, shape, whole) end
  check_mixed(found, parts, get("partition"))
  check_reservations(found, job, parts)
  check_memory(found, get, shape)
  check_gpus(found, shape)
  check_sockets(found, get)
  check_types_of_gpus(found, get)
  check_together(found, get, shape)
  check_words_of_gpus(found, job)
  check_time(found, minutes)
  check_exclusive(found, get("shared"))
  check_hidden(found, job)
  if get("array_inx") ~= nil then
    tasks, throttle = read_array(get("array_inx"))
    check_array(found, tasks, throttle)
  end
  check_hours(found, "gpu", most_gpus(shape), minutes, tasks)
  check_hours(found, "cpu", shape.cpus, minutes, tasks)
  if get("het_job_offset") ~= nil or job.cron_job then refuse_parts(found, job) end
  return found
end

local SUBMIT_AGAIN = "cancel the job and submit it again"

local function fewest_nodes_of(record)
  return positive(stated(record, "min_nodes")) or 1
end

-- The memory of each GPU that a job was asked with. Beside other memory Slurm writes the partition's default there, as
-- `gpu:4096`, which such a job does not have (measured).
local function of_each_gpu(record)
  local text = stated(record, "mem_per_tres")
  return text and string.find(text, "^gres") and text or nil
end

-- What the job would be after a change: the change where it says something, else the job as it is.
local function after(job, record)
  return function(field)
    local new = stated(job, field)
    if new ~= nil then return new end
    -- How many tasks the job has is not told here.
    if field == "num_tasks" then return record.min_cpus end
    if field == "num_tasks_guessed" then return true end
    if string.find(field, "^min_mem_per_") then
      -- Beside memory of each GPU stands there what the partition gives others, or 0.
      if of_each_gpu(record) or any(job, { "min_mem_per_node", "min_mem_per_cpu" }) then return nil end
    end
    if field == "mem_per_tres" then return of_each_gpu(record) end
    return stated(record, field)
  end
end

-- What a job has that is moved: on as many nodes as stand in its record. A partition that is not told here, since the user may
-- not run there, may have made them more (measured on 24.11 and 26.05).
local function after_move(job, record)
  local get, nodes = after(job, record), fewest_nodes_of(record)
  local of_node = math.max(of_gpus(stated(record, "tres_per_node")) or 0, of_gpus(stated(record, "gres")) or 0)
  local gpus = nodes * math.max(of_node, of_gpus(stated(record, "tres_per_task")) or 0)
  return function(field)
    if field == "max_nodes" then return nodes end
    return get(field)
  end, gpus, nodes
end

-- What no job may have changed, whatever it takes: what this file could not judge, and starting again by itself.
-- Slurm keeps a word of a change for GPUs that it does not read, and 26.05 takes the GPUs off for one: then the memory is
-- for GPUs that the job has not. What it reads begins as the record does, in which Slurm itself writes.
local function check_changed_gpus(found, job, record)
  local sign = nil
  for _, field in ipairs(COUNTED) do
    sign = sign or string.match(stated(record, field) or "", "gres([:/])gpu")
  end
  for _, field in ipairs(COUNTED) do
    for item in string.gmatch(stated(job, field) or "", "[^,]+") do
      if string.find(string.lower(item), "gpu") and not (sign and string.find(item, "^gres" .. sign)) then
        return refuse(found, "gpus", item .. " may not be read in a change; " .. SUBMIT_AGAIN)
      end
    end
  end
end

-- Slurm makes what a change names one after the other and stops at what it refuses: what was made before stays (measured
-- on 22.05 to 26.05). So one change names one thing that the size of a job depends on.
local function check_one_thing(found, job)
  local first = stated(job, "partition") and "partition"
  for _, field in ipairs(SHAPE) do
    if stated(job, field) ~= nil or job[field] == "" then
      if first then
        return refuse(found, "gpus", string.format("%s and %s are changed one after the other, not at once", first, field))
      end
      first = field
    end
  end
end

local function check_frozen(found, job, record)
  for field, what in pairs(FROZEN) do
    if stated(job, field) ~= nil then
      refuse(found, "gpus", string.format("the %s of a job are not changed; %s", what, SUBMIT_AGAIN))
    end
  end
  local gpus, had = of_gpus(stated(job, "tres_per_job")), of_gpus(stated(record, "tres_per_job")) or 0
  if gpus == 0 and had > 0 then -- Slurm writes it into the record, and the job keeps its GPUs
    refuse(found, "gpus", "the GPUs of a job cannot be taken off; " .. SUBMIT_AGAIN)
  elseif gpus and of_gpus(stated(record, "tres_per_task")) then
    refuse(found, "gpus", "GPUs are not changed where each task has some; " .. SUBMIT_AGAIN)
  elseif gpus and gpus > had then
    refuse(found, "gpus", "GPUs are only made fewer by a change; " .. SUBMIT_AGAIN)
  elseif gpus and types_of_gpus(job.tres_per_job) ~= types_of_gpus(record.tres_per_job) then -- Slurm adds them (measured)
    refuse(found, "gpus", "GPUs keep their type; " .. SUBMIT_AGAIN)
  elseif gpus and stated(record, "min_mem_per_cpu") and not of_each_gpu(record) then
    refuse(found, "memory-per-gpu", "memory for each CPU may be of CPUs that the GPUs bring; " .. SUBMIT_AGAIN)
  end
  local nodes = math.max(positive(stated(record, "max_nodes")) or 0, fewest_nodes_of(record))
  if count_nodes(stated(job, "req_nodes")) > nodes then
    refuse(found, "gpus", "the list names more nodes than the job has; " .. SUBMIT_AGAIN)
  end
end

-- How many CPUs and tasks a job gets is told of none of its fields for sure: so what is for each CPU only becomes less, and
-- so does memory that goes with GPUs of tasks (measured).
local function check_shares(found, job, record)
  local node, before = stated(job, "min_mem_per_node"), stated(record, "min_mem_per_node")
  local new, old = stated(job, "min_mem_per_cpu"), stated(record, "min_mem_per_cpu")
  if of_each_gpu(record) then -- afterwards nothing would tell which of both Slurm gives
    if node or new then refuse(found, "memory-per-gpu", "memory of each GPU stays as it is; " .. SUBMIT_AGAIN) end
    return
  end
  local of_tasks = of_gpus(stated(record, "tres_per_task"))
  if node and of_tasks and not (before and node > 0 and node <= before) then
    refuse(found, "memory-per-gpu", "memory is only made less where each task has GPUs; " .. SUBMIT_AGAIN)
  end
  if new and not (old and new <= old) then
    refuse(found, "memory-per-gpu", "memory for each CPU is only made less by a change; " .. SUBMIT_AGAIN)
  end
end

-- Where a CPU may have no more memory than MaxMemPerCPU, a job that is moved there, or gets more memory, gets CPUs for it. Of one
-- that comes from there, whose memory is for each CPU, Slurm takes what was asked once more, of which nothing is told.
local function check_split(found, job, record, parts)
  local elsewhere, node = stated(job, "partition"), stated(job, "min_mem_per_node")
  if not elsewhere and not node then return end
  local from = splits_of(parts, stated(record, "partition"))
  local get = at_least(after(job, record), 1, elsewhere and splits_of(parts, elsewhere) or from)
  if elsewhere and from[1] and stated(record, "min_mem_per_cpu") then
    refuse(found, "directives", "Slurm makes CPUs of memory above MaxMemPerCPU anew in each partition; " .. SUBMIT_AGAIN)
  end
  if get("max_mem_per_cpu") == nil then return end
  local alone = shape_of(after(job, record)).cpus
  local more = node == nil or node > (stated(record, "min_mem_per_node") or 0)
  if more and shape_of(get).cpus > alone or elsewhere and of_each_gpu(record) then
    refuse(found, "directives", "Slurm makes more CPUs of memory above MaxMemPerCPU; " .. SUBMIT_AGAIN)
  end
end

-- A partition with MinNodes gives a job more nodes than it has, and a list of reservations moves it into another partition
-- (measured on 22.05 to 26.05).
local function check_moved(found, job, record, parts)
  local elsewhere = stated(job, "partition")
  local untold = untold_of(parts, elsewhere)
  if untold and elsewhere then
    refuse(found, "partition", "what " .. untold .. " gives is not told for this user; submit the job there")
  elseif elsewhere and untold_of(parts, record.partition or "") then -- it may have given whole nodes, for good
    refuse(found, "partition", "what the job's partition gives is not told for this user; " .. SUBMIT_AGAIN)
  end
  if job.partition == "" then refuse(found, "partition", "name the partition: without a name it is the default one") end
  if not untold then check_mixed(found, parts, elsewhere) end
  local before = whole_nodes_of(parts, stated(record, "partition"))
  if elsewhere and before and elsewhere ~= record.partition then -- Slurm has written into the job that it takes whole nodes
    refuse(found, "partition", "a job of " .. before.name .. " has whole nodes elsewhere too; " .. SUBMIT_AGAIN)
  end
  if elsewhere and least_of(parts, elsewhere) > fewest_nodes_of(record) then
    refuse(found, "gpus", elsewhere .. " gives more nodes than the job has; " .. SUBMIT_AGAIN)
  end
  if string.find(stated(job, "reservation") or "", ",", 1, true) then
    refuse(found, "partition", "a job is moved into one reservation, not into a list; name one")
  end
  if of_gpus(stated(record, "tres_per_task")) and brings_cpus(after(job, record), splits_of(parts, elsewhere or "")[1]) then
    refuse(found, "gpus", "Slurm makes CPUs of memory above MaxMemPerCPU, and tasks with GPUs of those; " .. SUBMIT_AGAIN)
  end
  check_split(found, job, record, parts)
end

local function judge_fixed(found, job, record, parts)
  if type(record.min_cpus) ~= "number" then error("this Slurm does not tell min_cpus of a job") end
  local hidden = any(job, HIDDEN)
  if hidden then refuse(found, "memory-per-gpu", hidden .. " cannot be changed; " .. SUBMIT_AGAIN) end
  if (stated(job, "requeue") or 0) ~= 0 then refuse(found, "auto-retry", "no job is started again by itself") end
  for _, field in ipairs(COUNTED) do
    if job[field] == "" then -- what was allowed for its sake would stay, and Slurm counts an empty text otherwise than none
      refuse(found, "gpus", field .. " of a job cannot be taken off; " .. SUBMIT_AGAIN)
      break
    end
  end
  check_words_of_gpus(found, job)
  check_one_thing(found, job)
  check_listed(found, stated(job, "req_nodes"))
  check_frozen(found, job, record)
  check_shares(found, job, record)
  check_changed_gpus(found, job, record)
  local get = after(job, record)
  if any(job, OF_GRES) then check_types_of_gpus(found, get) end
  check_moved(found, job, record, parts)
end

-- The throttle that a change gives an array; Slurm 22.05 has set it before it asks.
local function new_throttle(job)
  local throttle = tonumber((string.gsub(job.array_inx, "%%", "")))
  if throttle == nil then error("the throttle cannot be read") end
  return throttle
end

local function judge_change(job, record, parts)
  local found = {}
  judge_fixed(found, job, record, parts)
  local elsewhere = stated(job, "partition")
  if any(job, SHAPE) or elsewhere then
    local get = after(job, record)
    local shape, whole = shape_of(get), whole_nodes_of(parts, elsewhere or stated(record, "partition"))
    if whole then take_whole_nodes(found, get, shape, whole) end
    if any(job, SHAPE) then check_memory(found, get, shape) end
    if any(job, GPU_SHAPE) or whole then check_gpus(found, shape) end
    if elsewhere then
      local moved, gpus = after_move(job, record)
      check_memory(found, moved, shape_of(moved))
      if gpus > LIMIT.gpus then
        refuse(found, "gpus", string.format("%.0f GPUs on the nodes that it has now are more than %d", gpus, LIMIT.gpus))
      end
    end
  end
  for _, field in ipairs(MINUTES) do
    if stated(job, field) ~= nil then check_time(found, job[field]) end
  end
  check_exclusive(found, stated(job, "shared"))
  check_hidden(found, job)
  if stated(job, "array_inx") ~= nil then -- this is said and logged, and MaxJobsPerUser of the QOS holds
    check_array(found, math.huge, new_throttle(job))
  end
  return found
end

-- Whether a job brings a ticket, which is spent then whoever sends it. Tickets.lua puts its own in place.
local brings_ticket = function() return false end

-- Whether a job was let in by one: then it stays within it, whoever has it.
local holds_ticket = function() return false end

-- Whether administrators asked for this. The account is the one that the job has, or asks for when it is new; it exempts no
-- user who is an agent. `name`: of the user, nil where the controller does not know it.
local function exempt(job, uid, account, name)
  if uid == 0 then return true end
  if job.user_id == uid and EXEMPT_USERS[job.user_name or ""] then return true end
  if account == nil or not EXEMPT_ACCOUNTS[account] then return false end
  return next(AGENT_USERS) == nil or name ~= nil and not AGENT_USERS[name]
end

-- The account that was judged stays the job's: a user may change which one is the default before anybody looks again.
local function keep_account(job, judged)
  if not stated(job, "account") and judged and judged ~= "" then job.account = judged end
end

local MOST_LINES = 10 -- of one answer: others wait while they are written
local MOST_LOGGED = 40 -- of all answers to a user in a second: what somebody sends again and again would fill the log

local function answer(found, uid, tell)
  local sent = of_this_second(uid)
  for place, one in ipairs(found) do
    if place > MOST_LINES then break end
    local line = string.sub(string.format("%s: %s", one.rule, one.text), 1, 500) -- what a user wrote stays one line
    line = string.gsub(line, "%c", "?")
    sent.lines = sent.lines + 1
    if sent.lines == MOST_LOGGED then line = line .. " (and more in this second)" end
    if sent.lines <= MOST_LOGGED then slurm.log_info("slurm-agent-tools floor: refused uid %.0f: %s", uid, line) end
    if tell then slurm.log_user("%s", line) end
  end
  if found[1] == nil then return slurm.SUCCESS end
  return found[1].code or -1 -- whatever this Slurm calls its errors
end

-- Slurm lets a job through when its functions fail. Here an error refuses.
local function safely(uid, tell, decide)
  local fine, result = pcall(decide)
  if fine and type(result) == "number" then return result end
  local told, code = pcall(answer, {
    { rule = "floor", text = "the limits could not be checked, tell an administrator: " .. tostring(result),
      code = slurm.ERROR },
  }, uid, tell)
  return told and code or -1
end

-- What is answered to a submission and to a change. Where the site gives tickets, tickets.lua puts its own in place.
local answer_submission = function(job, parts, uid) return answer(judge_submission(job, parts), uid, true) end
local answer_change = function(job, record, parts, uid) return answer(judge_change(job, record, parts), uid, false) end

function slurm_job_submit(job, parts, uid)
  return safely(uid, true, function()
    if OF_22_05 then job.extra = "" end -- no command of its own sends it, and its slurmctld frees it twice and ends
    local account = stated(job, "account") or job.default_account
    if exempt(job, uid, account, job.user_name) and (uid == 0 or not brings_ticket(job)) then
      keep_account(job, account)
      return slurm.SUCCESS
    end
    local long = check_length(job, uid)
    if long then return answer(long, uid, true) end
    local code = answer_submission(job, parts, uid, account)
    if code == slurm.SUCCESS then
      local tasks = tasks_to_tell(job, parts)
      keep_to_counts(job, parts)
      tasks = tasks or tasks_to_tell(job, parts) -- a range may have become one number
      if tasks then job.num_tasks = tasks end
      keep_account(job, account)
    end
    job.requeue = 0
    return code
  end)
end

function slurm_job_modify(job, record, parts, uid)
  return safely(uid, false, function()
    local free = exempt(job, uid)
    -- A coordinator of such an account may change the jobs of others in it, too.
    local own = uid == record.user_id
    local held = own and uid ~= 0 and holds_ticket(record)
    local name = record.user_name -- what a change says of its user is the word of who sends it
    if (name or "") == "" and job.user_id == uid then name = job.user_name end
    if not held and (free or own and exempt(job, uid, record.account, name)) then
      if free or job.account == nil or EXEMPT_ACCOUNTS[job.account] then return slurm.SUCCESS end
      return answer({ { rule = "account", text = "a job of an account that is exempt stays in such ones" } }, uid, false)
    end
    local sent = of_this_second(uid)
    if sent.refused >= MOST_REFUSED then
      if sent.refused == MOST_REFUSED then
        slurm.log_info("slurm-agent-tools floor: refused uid %.0f: more changes in this second, which are not read", uid)
      end
      sent.refused = sent.refused + 1
      return -1
    end
    sent.refused = sent.refused + 1 -- until it is let in: an error refuses it too
    local long = check_length(job, uid)
    local code = long and answer(long, uid, false) or answer_change(job, record, parts, uid)
    if code == slurm.SUCCESS then sent.refused = sent.refused - 1 end
    -- 22.05 asks before it looks whose job it is: another user's answer would tell what is hidden of it.
    if OF_22_05 and code ~= slurm.SUCCESS and uid ~= record.user_id then return slurm.ESLURM_USER_ID_MISSING or 2010 end
    return code
  end)
end
