"""Run analyses on a Ray cluster: the same worker processes, on many machines.

The web server (`engine`) speaks over a pipe (`link`) to a process of its own that belongs to the
cluster (`client`), which asks a Ray Serve deployment (`cluster`) of replicas (`replica`), each with
a local engine on its node. Ray is imported in the client, in replicas and in the command that
deploys them, and never in the web process: Ray ends a process that has lost its cluster.
"""
