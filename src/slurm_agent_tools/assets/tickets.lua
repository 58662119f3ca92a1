
-- ---------------------------------------------------------------------------------------------------------------
-- Tickets: what the site's service allowed, once, beyond the limits above. Memory in MB and time in minutes.

local ASK = "ask through slurm-agent-tools connect"

local KEYS = {
  "uid", "expires", "time", "memory", "gpumemory", "gpus", "cpus", "nodes", "tasks", "once", "whole", "partition", "qos",
  "account", "dependency", "licenses", "reservation", "gres",
}
local NAMES = {
  partition = true, qos = true, account = true, dependency = true, licenses = true, reservation = true, gres = true,
}
local UNBOUNDED = { time = true, memory = true, gpumemory = true } -- which a person may allow: `-`, here math.huge

-- What no ticket says, so that no job gets it with one.
local NEVER = {
  burst_buffer = "--bb", container = "--container", container_id = "--container-id", network = "--network",
  clusters = "--clusters",
}

-- With one of these in its environment a shell, or every program, runs something else before the script.
local FOREIGN_CODE = { "BASH_ENV", "ENV", "SHELLOPTS", "LD_PRELOAD", "LD_AUDIT", "SLURM_GET_USER_ENV" }

local function read_file(path)
  local file, reason, number = io.open(path, "rb")
  if file == nil then return nil, reason, number end
  local text, problem = file:read("*a")
  file:close()
  return text, problem
end

local function read_names(text)
  local names = {}
  if text == "-" then return names end
  for name in string.gmatch(text, "[^:]+") do
    local plain = string.gsub(name, "%%(%x%x)", function(code) return string.char(tonumber(code, 16)) end)
    names[plain] = true
  end
  return names
end

local function read_number(key, text)
  if text == "-" and UNBOUNDED[key] then return math.huge end
  if not string.match(text, "^%d+$") or #text > 15 then error("a ticket cannot be read: " .. key) end
  return tonumber(text)
end

local function read_ceilings(text)
  local ceilings, place = {}, 0
  for key, value in string.gmatch(text, "([^=,]+)=([^=,]+)") do
    place = place + 1
    if key ~= KEYS[place] then error("a ticket cannot be read: " .. key) end
    ceilings[key] = NAMES[key] and read_names(value) or read_number(key, value)
  end
  if place ~= #KEYS then error("a ticket cannot be read: " .. text) end
  return ceilings
end

-- The parts of `v1.NUMBER.SHA-256 OR -.CEILINGS`; nil where it is no ticket.
local function read_claim(text)
  local nonce, script, ceilings = string.match(text or "", "^v1%.(%x+)%.([%x%-]+)%.([^.%s]+)$")
  if nonce == nil or #nonce ~= 32 then return nil end
  return { nonce = nonce, script = script ~= "-" and script or nil, text = ceilings, most = read_ceilings(ceilings) }
end

-- The ceilings under which a job was let in. Its owner cannot change the comment in which they stand.
local function ceilings_of(record)
  local nonce, text = string.match(record.admin_comment or "", "^(%x+):(uid=.*)$")
  if nonce == nil or #nonce ~= 32 then return nil end
  return read_ceilings(text), nonce
end

-- A job's comment with the word by which the service knows it again, whatever its owner writes there.
local function marked(nonce, comment)
  local mark = "sat-" .. string.sub(nonce, 1, 16)
  local first, behind = string.sub(comment, 1, #mark), string.sub(comment, #mark + 1, #mark + 1)
  if first == mark and not string.find(behind, "[%w_]") then return comment end
  return comment == "" and mark or mark .. " " .. comment
end

-- --- Where tickets come from, and how each is spent once --------------------------------------------------------

local open_ticket -- of the word in a comment: the claim, what the script has to pass, and how it is spent; or nil, why
local is_of_this_site -- whether such a word is a ticket of this site, or was one

if TICKETS.folder ~= nil then
  local function is_a_number(word) return #word == 32 and string.match(word, "^%x+$") ~= nil end

  function is_of_this_site(word)
    local places = { TICKETS.folder .. "/" .. word, TICKETS.folder .. "/used/" .. word }
    return is_a_number(word) and (read_file(places[1]) or read_file(places[2])) ~= nil
  end

  function open_ticket(word)
    if not is_a_number(word) then return nil, "is no ticket of this site" end
    local path = TICKETS.folder .. "/" .. word
    local text = read_file(path)
    if text == nil then return nil, "is used already, taken back, or was never given" end
    local _, first = string.find(text, "^slurm%-agent%-tools ticket 1\n")
    local last = first and string.find(text, "\n", first + 1, true)
    local claim = last and read_claim(string.sub(text, first + 1, last - 1))
    if not claim or claim.nonce ~= word then return nil, "is no ticket of this site" end
    claim.holds = function(script) return script == string.sub(text, last + 1) end
    claim.spend = function() return os.rename(path, TICKETS.folder .. "/used/" .. word) end
    return claim
  end
else
  local used, signers, seen = {}, {}, nil
  local KEPT = 3600 -- seconds behind its end that a spent ticket is known, whatever becomes of the clock meanwhile
  local files, left = {}, 0 -- of spent tickets; how many more are spent until those whose time is over are dropped
  for _, path in ipairs(TICKETS.spent) do
    if path ~= files[1] then files[#files + 1] = path end
  end

  -- Beside each key, so that no change of keys, nor one that is taken back, makes a spent ticket good again.
  local function remember(line)
    for _, path in ipairs(files) do
      local file = assert(io.open(path, "a"))
      assert(file:write(line))
      assert(file:close())
    end
  end

  -- Adds the numbers of a file whose time is not over to `known`. Returns their lines, and whether there are others.
  local function read_spent(path, known)
    local now, kept, others = os.time(), {}, false
    local text, reason, number = read_file(path)
    if text == nil and number ~= 2 then error(reason) end -- ENOENT alone: none was spent yet
    for nonce, expires in string.gmatch(text or "", "(%x+) (%d+)\n") do
      nonce = string.sub(nonce, -32) -- behind half a line, which a full disk left
      local over = tonumber(expires) + KEPT < now
      others = others or over
      if not over and not known[nonce] then kept[#kept + 1] = nonce .. " " .. expires .. "\n" end
      known[nonce] = known[nonce] or not over
    end
    return kept, others
  end

  -- How long each file is, and its end, by which one that another controller wrote into is known.
  local function as_written()
    local told = {}
    for place, path in ipairs(files) do
      local file, reason, number = io.open(path, "rb")
      if file == nil and number ~= 2 then error(reason) end
      local length = file and file:seek("end") or 0
      if file then file:seek("set", math.max(0, length - 64)) end
      told[place] = string.format("%.0f %s", length, file and file:read("*a") or "")
      if file then file:close() end
    end
    return table.concat(told, "\n")
  end

  local function load_spent()
    local known = {}
    for _, path in ipairs(files) do read_spent(path, known) end
    used, seen = known, as_written()
  end

  -- A second controller waits with this file loaded, and takes over long after.
  local function catch_up()
    if as_written() == seen then return end
    local before = used
    load_spent()
    for nonce in pairs(before) do used[nonce] = true end -- whatever became of the files
  end

  -- By the controller that lets jobs in alone: one that waits writes over nothing of what the other one writes.
  local function drop_old()
    for _, path in ipairs(files) do
      local kept, others = read_spent(path, {})
      if others then
        local file = assert(io.open(path .. ".new", "w"))
        assert(file:write(table.concat(kept)))
        assert(file:close())
        assert(os.rename(path .. ".new", path))
      end
    end
    load_spent()
  end

  for place, path in ipairs(TICKETS.keys) do
    local key = string.gsub(assert(read_file(path)), "%s+$", "")
    if #key < 32 then error("the key in " .. path .. " is shorter than 32 bytes") end
    signers[place] = signer(key)
  end
  remember("") -- where that cannot be, nothing is let in
  load_spent()

  local function read_signed(word)
    if #word > TICKETS.word_bytes then return nil end
    local text, proof = string.match(word, "^(v1%..+)%.(%x+)$")
    local sound = false
    if text ~= nil then
      for _, sign in ipairs(signers) do sound = sound or sign(text) == proof end
    end
    return sound and read_claim(text) or nil
  end

  function is_of_this_site(word) return read_signed(word) ~= nil end

  function open_ticket(word)
    local claim = read_signed(word)
    if not claim then return nil, "is not signed by this site" end
    catch_up()
    if used[claim.nonce] then return nil, "is used already" end
    claim.holds = function(script)
      if #script > TICKETS.script_bytes then
        return false, string.format("is for scripts of at most %d bytes; move what this one holds into a file that it runs",
          TICKETS.script_bytes)
      end
      return sha256(script) == claim.script
    end
    claim.spend = function()
      remember(string.format("%s %.0f\n", claim.nonce, claim.most.expires))
      used[claim.nonce], seen, left = true, as_written(), left - 1
      if left < 0 then
        drop_old()
        left = 4096
      end
      return true
    end
    return claim
  end
end

-- The ticket in a comment, and the comment without it.
local function take_ticket(comment)
  local word, rest = nil, {}
  for part in string.gmatch(comment or "", "%S+") do
    if string.sub(part, 1, 7) ~= "ticket=" then
      rest[#rest + 1] = part
    elseif word ~= nil then
      word = ""
    else
      word = string.sub(part, 8)
    end
  end
  return word, table.concat(rest, " ")
end

-- --- A job against the ceilings of its ticket ---------------------------------------------------------------------

-- `exact`: a rule of the site's own speaks of it, and may be against less as well: so it is as it was judged.
local function over(found, rule, value, most, unit, code, exact)
  if value == most or value < most and not exact then return end
  local as_text = function(number)
    if number == math.huge then return "an open number of" end
    return string.format("%.0f", math.ceil(number))
  end
  local how = value > most and string.format("more than the %s of its ticket", as_text(most))
    or "fewer than its ticket says, and a rule of the site speaks of them"
  refuse(found, rule, string.format("%s %s are %s", as_text(value), unit, how), code)
end

-- Whether a list of tasks names each of them once, the least first.
local function ascends(text)
  local last = -1
  for item in string.gmatch((string.gsub(string.gsub(text, "%%.*$", ""), "[%[%]]", "")), "[^,]+") do
    local first, to = string.match(item, "^(%d+)%-?(%d*)")
    if first == nil or tonumber(first) <= last then return false end
    last = tonumber(to) or tonumber(first)
  end
  return true
end

-- How many nodes there are is one number, and each has as many tasks: of no --distribution is anything told here, and with
-- plane a node without a task comes with all of its CPUs (measured on 22.05 to 26.05).
local function check_placed(found, get, shape)
  local nodes, named = math.max(shape.nodes, shape.most_nodes), positive(get("min_nodes")) or 1
  local of_tasks = positive(get("num_tasks")) and (shape.of_job or shape.of_task)
  if (nodes > 1 or shape.tasks_per_node or of_tasks) and shape.cpus_per_node > shape.tasks / nodes * shape.cpus_per_task then
    -- No node is found for it on 24.11 and 26.05.
    return refuse(found, "directives", "--mincpus is more than the CPUs of the tasks on each node; leave it out")
  end
  if nodes == 1 then return end
  local said = named == shape.nodes and (positive(get("max_nodes")) or math.huge) <= named
  if not said or shape.nodes ~= shape.most_nodes then
    refuse(found, "directives", "a ticket is for one number of nodes; say --nodes=1, or another number with --ntasks-per-node")
  elseif shape.tasks ~= nodes * (shape.tasks_per_node or math.floor(shape.tasks / nodes)) then
    refuse(found, "directives", "a ticket on several nodes is for as many tasks on each; say --ntasks-per-node alone")
  elseif shape.tasks_per_part then -- 24.11, 26.05: a node may have no task all the same
    refuse(found, "directives", "on several nodes leave --ntasks-per-socket and --ntasks-per-core out; say --ntasks-per-node")
  elseif shape.of_job_alone and get("req_nodes") and shape.tasks > nodes then -- nor for it
    refuse(found, "gpus", "GPUs for several tasks on nodes that are named: say --gpus-per-node in place of --gpus")
  elseif OF_22_05 and shape.cpus_per_task > 1 and shape.gpus == 0 and get("shared") ~= 0 then -- one may come with all of its CPUs
    refuse(found, "directives", "a ticket on several nodes is for one CPU of each task here, or for whole nodes")
  end
end

-- Writes into a job what check_placed has seen, and that it has no more on a node.
local function keep_placed(job, parts)
  local shape = shape_of(asked_of(job, parts))
  job.min_nodes, job.max_nodes = shape.nodes, shape.nodes
  if shape.nodes > 1 and not shape.tasks_per_node then job.ntasks_per_node = shape.tasks / shape.nodes end
end

-- What may become less or more than it looks, where a rule of the site speaks of it, and tasks that are named twice.
local function check_exact(found, get, shape)
  local _, gpus = gpu_bounds(shape)
  if EXACT.gpus and shape.gpus ~= gpus then
    refuse(found, "directives", "a rule of the site speaks of GPUs, which may be more than they show; say --gpus-per-node")
  end
  if EXACT.gpus and shape.of_job and shape.of_task then -- 22.05 may give those of fewer tasks, with --overcommit (measured)
    refuse(found, "directives", "a rule of the site speaks of GPUs; leave --gpus out beside those of each task")
  end
  if (EXACT.tasks or EXACT.once) and get("array_inx") and not ascends(get("array_inx")) then
    refuse(found, "concurrent-jobs", "a rule of the site speaks of tasks; name each task of the array once, the least first")
  end
end

local function over_time(found, minutes, most)
  if minutes == nil or minutes >= slurm.INFINITE then minutes = math.huge end
  over(found, "time-limit", minutes, most.time, "minutes", slurm.ESLURM_INVALID_TIME_LIMIT, EXACT.time)
end

-- What a job takes on one node where it has no GPU, else for each GPU; all of a node where a size is 0 or missing. What
-- was allowed for the sake of GPUs is not for a job without any: it has what everybody has.
local function over_memory(found, get, shape, most)
  local memory, unit = most.memory, "MB of memory on a node"
  if shape.gpus == 0 and most.gpus > 0 then
    memory, unit = math.min(memory, LIMIT.memory_without_gpus), unit .. " without the GPUs of its ticket"
  end
  local node, cpu, gpu = get("min_mem_per_node"), of_each_cpu(get), of_gpus(get("mem_per_tres"))
  local on_node, of_gpu
  if node == 0 or cpu == 0 or gpu == 0 or not (node or cpu or gpu and shape.gpus > 0) then
    on_node, of_gpu = math.huge, math.huge
  elseif gpu ~= nil and shape.gpus > 0 then
    local _, gpus = gpu_bounds(shape)
    of_gpu = gpu
    over(found, "memory-per-gpu", gpu * gpus, most.nodes * most.memory, "MB of memory on all nodes")
  elseif node ~= nil then
    on_node, of_gpu = by_node(node, shape, (gpu_bounds(shape)))
  else
    on_node, of_gpu = by_cpu(cpu, shape, (gpu_bounds(shape)))
  end
  if on_node ~= nil then over(found, "memory-per-gpu", on_node, memory, unit) end
  if shape.gpus > 0 then over(found, "memory-per-gpu", of_gpu, most.gpumemory, "MB of memory per GPU") end
end

local function over_gpus(found, shape, most, exact)
  local _, gpus = gpu_bounds(shape)
  over(found, "gpus", gpus, most.gpus, "GPUs", nil, exact)
end

-- A ticket for whole nodes was judged by all that they have, so it is for nothing less.
local function over_whole_nodes(found, shared, most)
  if most.whole == 0 then
    check_exclusive(found, shared)
  elseif shared ~= 0 then
    refuse(found, "directives", "its ticket is for whole nodes; write --exclusive")
  end
end

-- A reservation may bring another partition, with whole nodes or more of them, of which the ticket does not tell (measured).
local function over_reservation(found, job)
  if stated(job, "reservation") ~= nil and stated(job, "partition") == nil then
    refuse(found, "partition", "name the partition: with a reservation it may be any")
  end
end

-- Of whole nodes a ticket is for the memory of a node: that of each CPU and GPU would be given for all of them (measured).
local function over_shares(found, source, whole)
  if whole and any(source, { "min_mem_per_cpu", "mem_per_tres" }) and not stated(source, "min_mem_per_node") then
    refuse(found, "memory-per-gpu", "whole nodes give memory for each CPU and GPU for all of them; write --mem")
  end
end

-- A partition that is down or drains hands its jobs to another one, which the ticket has to name as well.
local function over_alternates(found, source, most, parts)
  local names, named = stated(source, "partition"), {}
  if names == nil and stated(source, "reservation") then return end -- then the partition has to be named
  for name in string.gmatch(names or "", "[^,%s]+") do named[name] = true end
  for _, part in ipairs(partitions_of(parts, names)) do
    local first = names == nil and part.flag_default == 1 or named[part.name]
    if not first and not most.partition[part.name] then
      return refuse(found, "partition", string.format("name partition %s too, where its jobs come when another drains", part.name))
    end
  end
end

-- Where nothing is named Slurm takes its default, of which the ticket may not be. A change does that by an empty name.
local function over_names(found, source, most, new)
  for _, field in ipairs({ "partition", "qos", "account" }) do
    local value, allowed = stated(source, field), most[field]
    if value == nil and (new or source[field] == "") and next(allowed) ~= nil then
      refuse(found, field, string.format("name the %s of its ticket", field))
    elseif not new and source[field] == "" and field ~= "partition" then -- it would be what the user has chosen since
      refuse(found, field, string.format("the %s of a job with a ticket does not become the default one", field))
    end
    for name in string.gmatch(value or "", "[^,]+") do
      if not allowed[name] then
        refuse(found, field, string.format("%s %s is not in its ticket", field, name))
        break
      end
    end
  end
end

-- The QOS that a job has where it names none, for each partition where it may run: which one each user sets for themselves, at
-- any time (measured). Slurm tells only that of the partition that stands in the job, so each stands there for a moment.
local function default_qos_of(job, parts)
  local names, places, told, first = job.partition, {}, {}, nil
  for _, part in ipairs(partitions_of(parts, stated(job, "partition"))) do places[#places + 1] = part.name end
  for name in string.gmatch(names or "", "[^,%s]+") do places[#places + 1] = name end
  if places[1] == nil then places[1] = "" end
  for _, place in ipairs(places) do
    job.partition = place
    local name = job.default_qos or ""
    if name == "" and (job.default_account or job.account or "") ~= "" then name = "normal" end -- Slurm's own where there is accounting
    first = first or name
    told[name] = true
  end
  job.partition = names or ""
  return first, told
end

-- Of what a ticket does not name, nothing comes by default that has to be named. What was looked at stays the job's; each
-- account has a default QOS of its own.
local function keep_qos(found, job, parts, account)
  if stated(job, "qos") then return end
  keep_account(job, account)
  local first, told = default_qos_of(job, parts)
  for name in pairs(told) do
    if NAMED_QOS[string.lower(name)] then
      return refuse(found, "qos", string.format("the user's default QOS %s is for jobs that name it; write --qos", name))
    elseif name ~= first then
      return refuse(found, "qos", "the user's default QOS is another one in each of these partitions; write --qos")
    end
  end
  if first ~= "" then job.qos = first end
end

-- Whether a ticket says which GPUs: then any others are not meant.
local function names_types(kinds)
  for name in pairs(kinds) do
    if string.find(name, "^gpu:") then return true end
  end
  return false
end

-- What a job takes beside CPUs, memory and time. Types of GPUs count as `gpu:a100`, all else with its number, `nvme:2`.
local function over_others(found, source, most, cpus)
  for _, field in ipairs({ "licenses", "reservation" }) do
    local value = stated(source, field)
    if value ~= nil and not most[field][value] then
      refuse(found, field, string.format("%s %s is not in its ticket", field, value))
    end
  end
  for _, field in ipairs(OF_GRES) do
    for item in string.gmatch(string.lower(stated(source, field) or ""), "[^,%s]+") do
      local name = string.gsub(gres_of(item), "=", ":")
      if string.find(name, "^gpu:") then name = string.gsub(name, ":%d+[kmgt]?$", "") end
      local of_task = tonumber(string.match(name, "^cpu:(%d+)$") or math.huge)
      if name == "gpu" and names_types(most.gres) then
        refuse(found, "gres", "name the type of GPUs of its ticket")
        break
      elseif name ~= "gpu" and of_task > cpus and not most.gres[name] then
        refuse(found, "gres", string.format("%s is not in its ticket", name))
        break
      end
    end
  end
end

local function never_with_a_ticket(found, source)
  check_hidden(found, source)
  for field, option in pairs(NEVER) do
    if stated(source, field) ~= nil then
      refuse(found, "directives", string.format("%s is in no ticket; leave it out", option))
    end
  end
end

-- A job that waits for another was counted as none beside it, and one that waits for this one as none beside this.
local function other_dependency(found, value, most)
  local none = next(most.dependency) == nil and (value or "") == ""
  if not none and not most.dependency[value or ""] then
    refuse(found, "dependency", "the dependency is not that of its ticket")
  end
end

local function foreign_code(found, job)
  if job.script == nil then return end
  local environment = job.environment
  for _, name in ipairs(FOREIGN_CODE) do
    if environment ~= nil and environment[name] ~= nil then
      refuse(found, "ticket", name .. " runs other code before the script; unset it")
    end
  end
end

local function judge_with_ticket(job, most, parts, account)
  local found, get = {}, asked_of(job, parts)
  local shape, tasks, throttle = shape_of(get), 1, 0
  over_memory(found, get, shape, most)
  over_gpus(found, shape, most, EXACT.gpus)
  check_words_of_gpus(found, job)
  check_types_of_gpus(found, get)
  check_together(found, get, shape)
  check_sockets(found, get)
  over(found, "cpus", shape.cpus, most.cpus, "CPUs")
  over(found, "nodes", shape.most_nodes, most.nodes, "nodes", nil, EXACT.nodes)
  over_time(found, minutes_of(get), most)
  check_placed(found, get, shape)
  check_exact(found, get, shape)
  if EXACT.time and get("time_min") then over_time(found, get("time_min"), most) end
  over_whole_nodes(found, get("shared"), most)
  over_reservation(found, job)
  check_mixed(found, parts, stated(job, "partition"))
  over_shares(found, job, get("shared") == 0 or whole_nodes_of(parts, stated(job, "partition"), stated(job, "reservation")))
  over_names(found, job, most, true)
  over_alternates(found, job, most, parts)
  over_others(found, job, most, shape.cpus_per_task)
  never_with_a_ticket(found, job)
  other_dependency(found, stated(job, "dependency"), most)
  if get("array_inx") ~= nil then tasks, throttle = read_array(get("array_inx")) end
  over(found, "concurrent-jobs", tasks, most.tasks, "tasks of the array", nil, EXACT.tasks)
  over(found, "concurrent-jobs", throttle > 0 and math.min(throttle, tasks) or tasks, most.once, "tasks at once", nil, EXACT.once)
  if get("het_job_offset") ~= nil or job.cron_job then refuse_parts(found, job) end
  foreign_code(found, job)
  local split, node = get("max_mem_per_cpu"), get("min_mem_per_node")
  if split and node and node > split and shape.tasks > 1 and not shape.tasks_per_node then -- 24.11, 26.05
    refuse(found, "directives", "Slurm makes CPUs of memory above MaxMemPerCPU, as many for each task; write --ntasks-per-node")
  end
  keep_qos(found, job, parts, account) -- behind over_names, which looks at what is named
  return found
end

-- Why this ticket is not good for this job; the ticket is spent where it is.
local function admit(job, uid, word, parts, account)
  local claim, reason = open_ticket(word)
  local found = {}
  if claim == nil then
    refuse(found, "ticket", "the ticket " .. reason)
  elseif claim.most.uid ~= uid or job.user_id ~= uid then
    refuse(found, "ticket", "the ticket is another user's")
  elseif claim.most.expires < os.time() then
    refuse(found, "ticket", "the time of the ticket is over")
  else
    found = judge_with_ticket(job, claim.most, parts, account)
  end
  if found[1] == nil and (claim.script ~= nil or job.script ~= nil) then
    local same, limit = false, nil
    if claim.script ~= nil and job.script ~= nil then same, limit = claim.holds(job.script) end
    if not same then refuse(found, "ticket", "the ticket " .. (limit or "is for another script")) end
  end
  if found[1] == nil and not claim.spend() then refuse(found, "ticket", "the ticket is used already") end
  if found[1] ~= nil then refuse(found, "ticket", "for a job like this one, " .. ASK) end
  return found, claim
end

-- --- Changes of a job that has a ticket ---------------------------------------------------------------------------

-- Whether a change takes no more memory for the same than the job has, which needs no counting.
local function only_less_memory(job, record)
  for _, field in ipairs(SHAPE) do
    local new, old = stated(job, field), stated(record, field)
    if new ~= nil and not (string.find(field, "^min_mem_per_") and old ~= nil and new > 0 and new <= old) then
      return false
    end
  end
  return true
end

local function has_begun(record)
  if type(record.job_state) ~= "number" then error("this Slurm does not tell the state of a job") end
  return record.job_state % 256 ~= 0 -- PENDING; above stand flags
end

local function judge_change_with_ticket(job, record, most, parts)
  local found, get = {}, after(job, record)
  judge_fixed(found, job, record, parts)
  if not only_less_memory(job, record) then over_memory(found, get, shape_of(get), most) end
  if any(job, GPU_SHAPE) then over_gpus(found, shape_of(get), most, EXACT.gpus and stated(job, "tres_per_job")) end
  if stated(job, "partition") then
    local moved, gpus, nodes = after_move(job, record)
    over_memory(found, moved, shape_of(moved), most)
    over(found, "gpus", gpus, most.gpus, "GPUs")
    over(found, "nodes", nodes, most.nodes, "nodes")
    over_shares(found, record, whole_nodes_of(parts, job.partition))
  end
  over_shares(found, record, stated(job, "shared") == 0)
  if (job.req_nodes ~= nil or any(job, SHAPE)) and has_begun(record) then -- the accounting would begin anew (measured)
    refuse(found, "directives", "what a job that has begun takes stays as it is; cancel what is not needed any more")
  end
  if job.req_nodes ~= nil then
    over(found, "nodes", count_nodes(job.req_nodes), most.nodes, "nodes", nil, EXACT.nodes or EXACT.gpus)
  end
  for _, field in ipairs(MINUTES) do
    if stated(job, field) ~= nil then over_time(found, job[field], most) end
  end
  if EXACT.time and positive(stated(job, "end_time")) then -- from which Slurm makes a time limit
    refuse(found, "time-limit", "the end of a job stays as it is: a rule of the site speaks of its time")
  end
  if stated(job, "shared") ~= nil then over_whole_nodes(found, job.shared, most) end
  over_names(found, job, most, false)
  if job.partition ~= nil then over_alternates(found, job, most, parts) end
  over_others(found, job, most, 0)
  never_with_a_ticket(found, job)
  if job.dependency ~= nil then other_dependency(found, job.dependency, most) end
  if stated(job, "array_inx") ~= nil then
    local throttle = new_throttle(job)
    local at_once = math.min(throttle > 0 and throttle or math.huge, most.tasks)
    over(found, "concurrent-jobs", at_once, most.once, "tasks at once", nil, EXACT.once)
  end
  return found
end

-- --- What the controller calls ------------------------------------------------------------------------------------

-- Slurm finds an account by its name in any letters.
local function agents_account(account)
  for name in pairs(AGENT_ACCOUNTS) do
    if string.lower(name) == string.lower(account or "") then return true end
  end
  return false
end

local function of_agent(job, account)
  if job.user_name == nil and next(AGENT_USERS) ~= nil then error("the user's name is not known") end
  -- Without a default account Slurm takes the one that there is once it looks, and a user may set one by then (24.11).
  if (account or "") == "" and next(AGENT_ACCOUNTS) ~= nil then return true end
  return AGENT_USERS[job.user_name or ""] or agents_account(account)
end

local function judge_without_ticket(job, parts, account)
  local found = judge_submission(job, parts)
  if of_agent(job, account) then
    refuse(found, "ticket", "jobs of this user or account need a ticket; " .. ASK)
  elseif found[1] ~= nil then
    refuse(found, "ticket", "a job beyond these limits needs a ticket; " .. ASK)
  end
  return found
end

brings_ticket = function(job) -- another word is the user's own
  local word = take_ticket(job.comment)
  return word ~= nil and is_of_this_site(word)
end
holds_ticket = function(record) return ceilings_of(record) ~= nil end

answer_submission = function(job, parts, uid, account)
  local word, rest = take_ticket(job.comment)
  local found, claim
  if word ~= nil then found, claim = admit(job, uid, word, parts, account) else found = judge_without_ticket(job, parts, account) end
  local code = answer(found, uid, true)
  if claim ~= nil and code == slurm.SUCCESS then
    keep_placed(job, parts)
    job.comment = marked(claim.nonce, rest)
    job.admin_comment = claim.nonce .. ":" .. claim.text
    slurm.log_info("slurm-agent-tools floor: uid %.0f spent ticket %s", uid, claim.nonce)
  end
  return code
end

answer_change = function(job, record, parts, uid)
  local most, nonce = ceilings_of(record)
  if most ~= nil then
    local code = answer(judge_change_with_ticket(job, record, most, parts), uid, false)
    if job.comment ~= nil then job.comment = marked(nonce, job.comment) end
    return code
  end
  local found = judge_change(job, record, parts)
  if agents_account(job.account) or job.account == "" and next(AGENT_ACCOUNTS) ~= nil then -- which is the default one
    refuse(found, "ticket", "jobs of this account need a ticket; " .. ASK)
  end
  return answer(found, uid, false)
end
