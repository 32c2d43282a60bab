"""``paretone group-tokens``: find groups of speech tokens that sound alike, and play them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from paretone.audio.recording import write_sound
from paretone.bench.report import table
from paretone.commands import arguments
from paretone.commands.command import Result
from paretone.commands.output import apart, writable, writable_sound, write_json
from paretone.commands.technique_args import with_weights
from paretone.commands.terminal import JOB, Session
from paretone.errors import ProfileError, SettingError
from paretone.models.base import SpeechModel
from paretone.session.commands import Prepare
from paretone.setting.knobs import Values, checked
from paretone.setting.profile import artefact_in
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import compatibility_of, token_groups
from paretone.techniques.token_groups.groups import DECIDED, FindGroups, Groups, HearGroup, fixed_knobs


def with_groups(
    setting: Setting, model: SpeechModel, path: str, knobs: Mapping[str, object]
) -> tuple[Setting, tuple[Groups, ...]]:
    """``setting`` with drafts accepted in the groups of the file ``path``, and these groups. ``knobs`` are those given
    by the user. Raises :class:`ProfileError` if they cannot be used here."""
    technique = token_groups.TECHNIQUE
    groups: Groups = artefact_in(path, technique)
    if reason := groups.mismatch(compatibility_of(model.info, setting)):
        raise ProfileError(f"The token groups {path} cannot be used here: {reason}.")
    values = fixed_knobs(groups, checked(technique.knobs, knobs, technique.title))
    return setting.with_technique(UsedTechnique(technique.name, values, groups.fingerprint)), (groups,)


NAME = "group-tokens"
SUMMARY = "Find groups of speech tokens that sound alike, in which drafts are accepted (PCG)."


def declare(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser, arguments.DEFAULT_LANGUAGE_MODEL)
    arguments.add_sampler(parser)
    arguments.add_techniques(parser.add_argument_group("techniques that change the weights, such as a student"))
    group = parser.add_argument_group("groups")
    arguments.add_knobs(group, [knob for knob in token_groups.TECHNIQUE.knobs if knob.name in DECIDED])
    group.add_argument("--out", metavar="FILE", help="file for the groups, to be used with --groups")
    heard = parser.add_argument_group("hearing")
    heard.add_argument(
        "--audio", metavar="FILE", help=f"{arguments.sound_file()}: the members of a group, one after another"
    )
    heard.add_argument(
        "--group", type=arguments.positive, default=1, help="which group, from the largest (default: %(default)s)"
    )
    heard.add_argument("--voice", help=f"{arguments.VOICES} (default: the model's first)")
    parser.set_defaults(transcript="")


def run(options: argparse.Namespace, session: Session) -> Result:
    kinds = {"out": writable, "audio": writable_sound}
    places = {name: check(path) for name, check in kinds.items() if (path := getattr(options, name)) is not None}
    apart({f"--{name}": path for name, path in places.items()}, {"--voice": options.voice})
    arguments.refuse_from_files(options, token_groups.NAME)
    model_id = arguments.model(options)
    setting = arguments.setting(options, model_id)
    model = arguments.load(options, session, model_id, options.variant)
    setting = with_weights(setting, model.info)
    knobs = Values(arguments.given(options, token_groups.TECHNIQUE.knobs))
    setting = setting.with_technique(UsedTechnique(token_groups.NAME, knobs))
    found = session.carry_out(Prepare(JOB, token_groups.NAME, FindGroups(setting))).result
    groups: Groups = found.groups
    lines = [*table([{"tokens": size, "groups": count} for size, count in groups.sizes.items()]), "", groups.line + "."]
    data = {
        "fingerprint": groups.fingerprint,
        "groups": len(groups.members),
        "grouped": groups.grouped,
        "codes": groups.codes,
        "mean_size": groups.mean_size,
        "sizes": {str(size): count for size, count in groups.sizes.items()},
        "seconds": found.seconds,
    }
    if "out" in places:
        write_json(places["out"], groups.to_json())
        data["out"] = str(places["out"])
        lines.append(f"Wrote the groups to {places['out']}.")
    if "audio" in places:
        members = _chosen(groups, options.group)
        request = HearGroup(setting, arguments.voice(options, model_id), members)
        sound = session.carry_out(Prepare(JOB, token_groups.NAME, request)).result
        remarks = write_sound(places["audio"], sound.samples, sound.sample_rate)
        data |= {"audio": str(places["audio"]), "members": list(members), "starts": list(sound.starts)}
        listed = ", ".join(map(str, members))
        lines.append(f"Wrote the tokens {listed}, one after another, to {places['audio']}.")
        lines += remarks
    return Result(data, "\n".join(lines))


def _chosen(groups: Groups, number: int) -> tuple[int, ...]:
    """Group by number, from 1, the largest. Raises :class:`SettingError`."""
    if number > len(groups.members):
        raise SettingError(
            f"There {'is' if len(groups.members) == 1 else 'are'} {len(groups.members)} groups of several tokens; "
            "choose a smaller number, or find groups with a lower similarity."
        )
    return groups.by_size[number - 1]
