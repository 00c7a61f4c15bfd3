import json


def pre_submit(topology_name, env_name, env_config, options):
    options["words.submitted.as"] = [topology_name, env_name, env_config["virtualenv_root"]]


def post_submit(topology_name, env_name):
    with open("submitted.json", "w") as file:
        json.dump([topology_name, env_name], file)
