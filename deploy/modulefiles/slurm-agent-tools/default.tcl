#%Module1.0
# For Environment Modules, and for Lmod as well. Copy it to MODULEPATH/slurm-agent-tools/VERSION, after
#     make install PREFIX=/apps/slurm-agent-tools/VERSION
# and set the folder here if yours is another one.
set version [file tail $ModulesCurrentModulefile]
set prefix /apps/slurm-agent-tools/$version

proc ModulesHelp {} {
    puts stderr "Guarded Slurm tools for coding agents, over MCP and as a command line: slurm-agent-tools"
}
module-whatis "slurm-agent-tools: guarded Slurm tools for coding agents"
conflict slurm-agent-tools

prepend-path PATH $prefix/bin
prepend-path MANPATH $prefix/share/man
