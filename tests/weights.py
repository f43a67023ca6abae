"""The weights of a pipeline, to be compared to the last bit."""


def weights_of(nlp):
    weights = {}
    with_models = [(name, pipe) for name, pipe in nlp.pipeline if hasattr(pipe, "model")]
    for name, component in with_models:
        for n, node in enumerate(component.model.walk()):
            for key in node.param_names:
                if node.has_param(key):
                    weights[f"{name} {n} {key}"] = node.get_param(key).tobytes()
            for shim in node.shims:
                for key, tensor in shim._model.state_dict().items():
                    weights[f"{name} {n} {key}"] = tensor.numpy().tobytes()
    return weights
