"""Properties of the distillation's terms; their values are checked by parity."""

from __future__ import annotations

import pytest
import torch

from paretone.techniques.spade.training import (
    composite_loss,
    embedding_loss,
    latent_loss,
    skewed_divergence,
    target_layers,
)
from paretone.training.token_recipe import Seen, divergence, each_divergence


def seen(seed: int, layers: int = 2) -> Seen:
    generator = torch.Generator().manual_seed(seed)
    outputs = {layer: torch.randn(2, 5, 4, generator=generator) for layer in range(layers)}
    attention = {layer: torch.rand(2, 1, 5, 5, generator=generator) for layer in range(layers)}
    return Seen(torch.randn(7, 9, generator=generator), torch.randn(2, 5, 4, generator=generator), outputs, attention)


def test_a_model_is_not_apart_from_itself() -> None:
    one = seen(0)
    assert divergence(one.logits, one.logits) == pytest.approx(0, abs=1e-6)
    assert (each_divergence(seen(1).logits, one.logits) > 0).all()
    terms = composite_loss(one, one, torch.zeros(7, dtype=torch.long), (0, 1))
    assert float(terms.latent) == float(terms.attention) == float(terms.embedding) == 0


def test_the_skewed_divergence_has_the_gradient_of_the_divergence_itself() -> None:
    wanted = seen(0).logits
    gradients = []
    entropy = -(wanted.softmax(-1) * wanted.log_softmax(-1)).sum(-1).mean()
    for constant in (0.0, float(entropy)):
        found = seen(1).logits.requires_grad_()
        (skewed_divergence(found, wanted) - constant).backward()
        gradients.append(found.grad)
    assert torch.equal(*gradients)
    # Without skew it is the divergence plus the teacher's entropy.
    plain = skewed_divergence(seen(1).logits, wanted, skew=0.0)
    assert float(plain) == pytest.approx(float(divergence(seen(1).logits, wanted) + entropy), abs=1e-5)


def test_padding_does_not_count() -> None:
    student, teacher = seen(0), seen(1)
    heard = torch.ones(2, 5, dtype=torch.bool)
    heard[1, 3:] = False
    whole = latent_loss(student, teacher, (0, 1), heard), embedding_loss(student, teacher, heard)
    for one in (*student.outputs.values(), student.embedded):
        one[1, 3:] = 1000
    assert (latent_loss(student, teacher, (0, 1), heard), embedding_loss(student, teacher, heard)) == whole


def test_relative_errors_do_not_depend_on_the_size_of_the_residual_stream() -> None:
    student, teacher = seen(0), seen(1)
    before = latent_loss(student, teacher, (0, 1), relative=True)
    for one in (*student.outputs.values(), *teacher.outputs.values()):
        one.mul_(30)
    assert float(latent_loss(student, teacher, (0, 1), relative=True)) == pytest.approx(float(before), rel=1e-5)
    assert float(latent_loss(student, teacher, (0, 1))) > 100 * float(before)


def test_the_weights_of_the_terms_sum_to_one() -> None:
    student, teacher = seen(0), seen(1)
    terms = composite_loss(student, teacher, torch.arange(7), (0, 1))
    named = terms.named()
    others = sum(value for name, value in named.items() if name != "cross_entropy")
    assert float(terms.total(1.0)) == pytest.approx(named["cross_entropy"])
    assert float(terms.total(0.0)) == pytest.approx(others / 4)


def test_where_attention_was_not_looked_at_its_term_is_zero() -> None:
    student, teacher = (Seen(one.logits, one.embedded, one.outputs) for one in (seen(0), seen(1)))
    assert float(composite_loss(student, teacher, torch.arange(7), (0, 1)).attention) == 0


def test_every_removed_layer_is_learnt_by_the_one_before_it() -> None:
    assert target_layers((0, 3, 4), 8) == (2, 3, 7)
    assert target_layers(range(5), 5) == tuple(range(5))
