"""The groups of measurements by name, in order of execution; each is a function of the bench and the report."""
from . import bulk, challenge, clients, commands, floor, footprint, fronts, memory, scaling, schemes, start

GROUPS = {
    "floor": floor.run, "footprint": footprint.run, "schemes": schemes.run, "urlsession": clients.urlsession,
    "requests": clients.requests, "aria2": clients.aria2, "commands": commands.run, "bulk": bulk.run, "challenge": challenge.run, "start": start.run, "memory": memory.run,
    "scaling": scaling.run, "fronts": fronts.run}
