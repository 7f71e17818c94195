"""Run analyses on a Ray cluster: the same worker processes, on many machines.

The web server (`engine`) talks over a pipe (`link`) to a separate process that has joined the
cluster (`client`). The client asks a Ray Serve deployment (`cluster`) of replicas (`replica`), each
with a local engine on its node. Only the client, the replicas and the command that deploys them
import Ray. The web process never does, because Ray kills a process that has lost its cluster.
"""
