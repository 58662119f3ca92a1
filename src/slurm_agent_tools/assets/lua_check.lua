-- Loads a job_submit.lua in a Lua beside Slurm's controller and asks it about jobs: lua lua_check.lua FILE
-- A file that cannot be loaded keeps slurmctld from starting. Nothing is written: what the file writes goes nowhere.

local path = assert(arg[1], "name the file to check")

local MISSING, NARROW, WIDE = 4294967294, 65534, 18446744073709551614

local told = {}
slurm = {
  NO_VAL = MISSING, NO_VAL16 = NARROW, NO_VAL64 = WIDE, INFINITE = 4294967295, SUCCESS = 0, ERROR = -1,
  ESLURM_ACCOUNTING_POLICY = 2050, ESLURM_INVALID_TIME_LIMIT = 2051,
  log_info = function() end, log_error = function() end, log_debug = function() end,
  log_user = function(form, ...) told[#told + 1] = string.format(form, ...) end,
}

local open = io.open
local nowhere = { write = function() return true end, close = function() return true end }
io.open = function(name, mode)
  if mode ~= nil and string.find(mode, "[wa+]") then return nowhere end
  return open(name, mode)
end
os.rename = function() return true end
os.remove = os.rename

local function job(fields)
  local made = {
    bitflags = 0, cpus_per_task = NARROW, max_nodes = MISSING, min_cpus = MISSING, min_nodes = MISSING, ntasks_per_node = NARROW,
    ntasks_per_tres = NARROW, num_tasks = MISSING, pn_min_cpus = NARROW, pn_min_memory = WIDE, requeue = NARROW,
    shared = NARROW, sockets_per_node = NARROW, time_limit = MISSING, user_id = 65534, user_name = "nobody",
    default_account = "nobody", environment = {},
  }
  for name, value in pairs(fields) do made[name] = value end
  return made
end

local function asked(what, fields)
  told = {}
  local code = slurm_job_submit(job(fields), {}, 65534)
  if type(code) ~= "number" then error(what .. " gets no number as an answer") end
  for _, line in ipairs(told) do
    if string.find(line, "^floor: ") then error(what .. ": " .. line) end
  end
  return code
end

assert(assert(loadfile(path))() == slurm.SUCCESS, "the file does not end with slurm.SUCCESS")
assert(type(slurm_job_submit) == "function" and type(slurm_job_modify) == "function", "a function is missing")
asked("a small job", { time_limit = 1, min_mem_per_node = 1, pn_min_memory = 1 })
assert(asked("a job without limits", {}) ~= slurm.SUCCESS, "a job without limits is let in")
assert(asked("a job with a false ticket", { comment = "ticket=" .. string.rep("0", 32) }) ~= slurm.SUCCESS,
  "a job with a false ticket is let in")
print("loaded by " .. _VERSION)
