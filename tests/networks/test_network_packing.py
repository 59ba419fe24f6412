from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from clearloop.errors import ClearloopError
from clearloop.networks import Ensemble, pack_networks, unpack_networks
from tests.networks.test_network import random_network


def ensemble(members: int, targets: int, sizes: tuple[int, ...]) -> Ensemble:
    rng = np.random.default_rng(1)
    return tuple(tuple(random_network(rng, sizes, "tanh") for _ in range(targets)) for _ in range(members))


def test_ensembles_survive_one_safetensors_file_bit_for_bit(tmp_path: Path) -> None:
    dynamics, reward = ensemble(3, 2, (5, 4, 4, 1)), ensemble(1, 1, (4, 3))
    save_file(
        pack_networks(dynamics, "dynamics") | pack_networks(reward, "reward"),
        tmp_path / "surrogate.safetensors",
    )
    arrays = load_file(tmp_path / "surrogate.safetensors")
    assert arrays["dynamics.weights.0"].shape == (3, 2, 4, 5)
    assert arrays["reward.biases.0"].shape == (1, 1, 3)
    for name, networks in {"dynamics": dynamics, "reward": reward}.items():
        restored = unpack_networks(arrays, name, "tanh")
        assert [len(member) for member in restored] == [len(member) for member in networks]
        for before, after in zip(sum(networks, ()), sum(restored, ()), strict=True):
            x = np.random.default_rng(2).normal(size=(10, before.sizes[0]))
            assert after.sizes == before.sizes
            assert np.array_equal(after(x), before(x))


def test_networks_of_different_sizes_do_not_stack() -> None:
    with pytest.raises(ValueError, match="equal sizes"):
        pack_networks(ensemble(1, 1, (2, 1)) + ensemble(1, 1, (3, 1)), "dynamics")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"a.weights.0": None}, r"no array a\.weights\.0"),
        ({"a.biases.0": np.zeros(4)}, r"no array a\.biases\.0 with 3 dimensions"),
        ({"a.weights.1": np.zeros((2, 1, 1, 4))}, "different numbers of networks"),
        ({"a.weights.1": None}, "do not fit together"),
        ({"a.weights.1": np.zeros((2, 2, 1, 7))}, "do not fit together"),
    ],
)
def test_damaged_files_are_refused(damage: dict[str, np.ndarray | None], message: str) -> None:
    arrays = {
        k: v for k, v in (pack_networks(ensemble(2, 2, (3, 4, 1)), "a") | damage).items() if v is not None
    }
    with pytest.raises(ClearloopError, match=message):
        unpack_networks(arrays, "a", "relu")
