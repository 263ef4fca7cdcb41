from __future__ import annotations

import json
from pathlib import Path

import pytest

import toolgen as package
from toolgen.cli.config import read_config
from toolgen.errors import ConfigError


def write(folder: Path, text: str, name: str = "toolgen.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def problems(folder: Path, text: str) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        read_config(write(folder, text))
    assert caught.value.exit_code == 2
    return {problem.where: problem.message for problem in caught.value.problems}


# generating from it


def test_without_spec_every_api_of_the_file_is_generated(toolgen, folder, files):
    write(folder, "apis: {petstore: {spec: petstore.yaml}, shop: {spec: petstore.yaml, output: out.json}}")
    result = toolgen("generate")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "petstore: 10 tools" in result.stdout
    assert "shop: 10 tools" in result.stdout
    assert files() == ["out.json", "petstore.tools.yaml", "petstore.yaml", "toolgen.yaml"]
    assert package.load_toolset("out.json").api == "shop"


def test_every_key_has_its_effect(toolgen, folder, httpserver, monkeypatch):
    monkeypatch.setenv("SPEC_TOKEN", "s3cret")
    (folder / "shared").mkdir()
    document = (folder / "petstore.yaml").read_text(encoding="utf-8")
    httpserver.expect_request("/p.yaml", headers={"Authorization": "Bearer s3cret"}).respond_with_data(document)
    write(
        folder,
        f"""
        apis:
          shop:
            spec: {httpserver.url_for("/p.yaml")}
            output: shop.yaml
            server: https://test.example
            include: [tag:pets]
            exclude: ['DELETE /**']
            skipDeprecated: true
            namePrefix: s_
            nameLimit: 16
            allowRoots: [shared]
            allowHosts: [specs.example]
            specHeaders: {{Authorization: 'Bearer ${{env:SPEC_TOKEN}}'}}
        """,
    )
    result = toolgen("generate")
    assert result.exit_code == 0, result.output
    made = package.load_toolset("shop.yaml")
    assert made.server == "https://test.example"
    assert [tool.name for tool in made.tools] == [
        *["s_listPets", "s_createPet", "s_listMyPets", "s_getPet", "s_replacePet", "s_updatePet", "s_uploadPetPhoto"]
    ]
    assert "s3cret" not in result.output + Path("shop.yaml").read_text(encoding="utf-8")


def test_paths_are_relative_to_the_files_folder(toolgen, folder, files):
    (folder / "sub/specs").mkdir(parents=True)
    (folder / "petstore.yaml").rename(folder / "sub/specs/petstore.yaml")
    write(folder, "apis: {petstore: {spec: specs/petstore.yaml}}", "sub/apis.yaml")
    assert toolgen("generate", "--config", "sub/apis.yaml").exit_code == 0
    assert "sub/petstore.tools.yaml" in files()


def test_api_chooses_one(toolgen, folder, files):
    write(folder, "apis: {one: {spec: petstore.yaml}, two: {spec: gone.yaml}}")
    assert toolgen("generate", "--api", "one").exit_code == 0
    assert "one.tools.yaml" in files()
    unknown = toolgen("generate", "--api", "on")
    assert unknown.exit_code == 2
    assert "did you mean 'one'?" in unknown.stderr


def test_an_export_stands_beside_the_toolset(toolgen, folder, files):
    (folder / "out").mkdir()
    write(folder, "apis: {petstore: {spec: petstore.yaml, output: out/p.yaml}}")
    assert toolgen("generate", "--target", "mcp").exit_code == 0
    assert "out/petstore.mcp.json" in files()


def test_json_has_one_entry_per_api(toolgen, folder):
    write(folder, "apis: {one: {spec: petstore.yaml}, two: {spec: petstore.yaml}}")
    data = json.loads(toolgen("generate", "--format", "json").stdout)
    assert [(entry["api"], Path(entry["written"]).name) for entry in data["apis"]] == [
        ("one", "one.tools.yaml"),
        ("two", "two.tools.yaml"),
    ]


def test_check_covers_all(toolgen, folder):
    write(folder, "apis: {one: {spec: petstore.yaml}, two: {spec: petstore.yaml}}")
    toolgen("generate", "--api", "one")
    result = toolgen("generate", "--check")
    assert result.exit_code == 1
    assert "one.tools.yaml is up to date" in result.stdout
    assert "two.tools.yaml would change" in result.stdout


# all or nothing


def test_one_that_fails_leaves_all_unwritten_and_every_failure_is_reported(toolgen, folder, files):
    write(
        folder,
        "apis: {good: {spec: petstore.yaml}, gone: {spec: gone.yaml}, none: {spec: petstore.yaml, include: [tag:no]}}",
    )
    before = files()
    result = toolgen("generate")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "2 of 3 APIs failed; nothing was written" in result.stderr
    assert "apis.gone: there is no file" in result.stderr
    assert "apis.none: no operation is left" in result.stderr
    assert "apis.none: 'tag:no' matches nothing" in result.stderr
    assert files() == before


def test_edits_in_one_file_leave_all_unwritten(toolgen, folder, files):
    write(folder, "apis: {one: {spec: petstore.yaml}, two: {spec: petstore.yaml}}")
    toolgen("generate", "--api", "two")
    path = folder / "two.tools.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("What it is called.", "Its name."), encoding="utf-8")
    before = files()
    result = toolgen("generate")
    assert result.exit_code == 1
    assert "apis.two: schemas.NewPet.properties.name.description" in result.stderr
    assert files() == before


def test_strict_counts_for_all(toolgen, folder, files):
    bad = "openapi: 3.1.0\ninfo: {title: B, version: '1'}\npaths: {/a/../b: {get: {responses: {}}}, /c: {get: {}}}\n"
    write(folder, bad, "bad.yaml")
    write(folder, "apis: {one: {spec: petstore.yaml}, two: {spec: bad.yaml}}")
    before = files()
    assert toolgen("generate", "--strict").exit_code == 1
    assert files() == before


def test_a_write_that_fails_leaves_all_as_they_were(toolgen, folder, files, monkeypatch):
    from toolgen.cli.writing import Output

    save = Output.save

    def failing(self: Output, path: Path) -> None:
        if self.toolset.api == "two":
            raise OSError(28, "No space left on device")
        save(self, path)

    monkeypatch.setattr(Output, "save", failing)
    write(folder, "apis: {one: {spec: petstore.yaml}, two: {spec: petstore.yaml}}")
    before = files()
    result = toolgen("generate")
    assert result.exit_code == 1
    assert "two.tools.yaml cannot be written: No space left on device" in result.stderr
    assert files() == before


# what is wrong with a file


def test_all_problems_are_reported_at_once_each_with_its_place_and_line(toolgen, folder, files):
    write(
        folder,
        "apis:\n"
        "  petstore: {spcc: petstore.yaml}\n"
        "  Bad: {spec: petstore.yaml, include: [GET], nameLimit: 70}\n"
        "  empty:\n"
        "apiz: 1\n",
    )
    before = files()
    result = toolgen("generate")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: toolgen.yaml has 7 problems\n")
    for line in (
        "toolgen.yaml:2: apis.petstore.spcc: unknown key; did you mean 'spec'?",
        "toolgen.yaml:2: apis.petstore: `spec` is missing",
        "toolgen.yaml:3: apis.Bad: no name for an API",
        "toolgen.yaml:3: apis.Bad.include[0]: the filter 'GET'",
        "toolgen.yaml:3: apis.Bad.nameLimit: expected a number from 8 to 64",
        "toolgen.yaml:4: apis.empty: expected a mapping, this is empty",
        "toolgen.yaml:5: apiz: unknown key; did you mean 'apis'?",
    ):
        assert line in result.stderr
    assert files() == before


def test_problems_as_json(toolgen, folder):
    write(folder, "apis: {petstore: {spcc: petstore.yaml, spec: petstore.yaml}}")
    error = json.loads(toolgen("generate", "--format", "json").stdout)["error"]
    assert error["type"] == "ConfigError"
    assert error["problems"] == [
        {
            "message": "unknown key; did you mean 'spec'?",
            "where": "apis.petstore.spcc",
            "line": 1,
            "file": "toolgen.yaml",
        }
    ]


@pytest.mark.parametrize(
    ("api", "where"),
    [
        ("{spec: 1}", "apis.a.spec"),
        ("{spec: ''}", "apis.a.spec"),
        ("{spec: '-'}", "apis.a.spec"),
        ("{spec: x, output: '-'}", "apis.a.output"),
        ("{spec: x, server: [y]}", "apis.a.server"),
        ("{spec: x, include: tag:pets}", "apis.a.include"),
        ("{spec: x, exclude: [1]}", "apis.a.exclude[0]"),
        ("{spec: x, skipDeprecated: yes}", "apis.a.skipDeprecated"),
        ("{spec: x, namePrefix: 'a b'}", "apis.a.namePrefix"),
        ("{spec: x, namePrefix: abcdefgh, nameLimit: 10}", "apis.a.namePrefix"),
        ("{spec: x, nameLimit: true}", "apis.a.nameLimit"),
        ("{spec: x, allowRoots: x}", "apis.a.allowRoots"),
        ("{spec: x, allowHosts: {x: y}}", "apis.a.allowHosts"),
        ("{spec: x, specHeaders: {A: b}}", "apis.a.specHeaders"),
        ("{spec: 'http://x/y', specHeaders: {A: 1}}", "apis.a.specHeaders.A"),
        ("{spec: 'http://x/y', specHeaders: {'A b': c}}", "apis.a.specHeaders['A b']"),
        ("{spec: x, credentials: s3cret}", "apis.a.credentials"),
        ("{spec: x, credentials: {k: '${caller:s3cret}'}}", "apis.a.credentials.k"),
        ("{spec: x, credentials: {k: {scope: [1]}}}", "apis.a.credentials.k.scope[0]"),
        ("{spec: x, credentials: {'https://b.example': {k: '{env:A}'}}}", "apis.a.credentials['https://b.example'].k"),
        ("{spec: x, serverVariables: [s3cret]}", "apis.a.serverVariables"),
        ("{spec: x, serverVariables: {port: 8443}}", "apis.a.serverVariables.port"),
        ("{spec: x, serverVariables: {port: '${env:P}'}}", "apis.a.serverVariables.port"),
        ("{spec: x, allowPrivate: 10.0.0.0/8}", "apis.a.allowPrivate"),
        ("{spec: x, allowPrivate: [10.0.0.0/8, s3cret]}", "apis.a.allowPrivate[1]"),
        ("{spec: x, allowPrivate: [10.1.0.0/8]}", "apis.a.allowPrivate[0]"),
        ("{spec: x, callerReferences: no}", "apis.a.callerReferences"),
        ("[]", "apis.a"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(folder, api, where):
    found = problems(folder, f"apis: {{a: {api}}}")
    assert list(found) == [where]
    assert "s3cret" not in str(found)


@pytest.mark.parametrize("text", ["[]", "apis:", "apis: []", "apis: {}", "x: 1", "a: b: c", "apis: {a: {}, a: {}}"])
def test_a_file_of_another_shape_is_refused(toolgen, folder, text):
    write(folder, text)
    result = toolgen("generate")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")


def test_a_config_that_is_not_there_is_wrong_usage(toolgen):
    assert toolgen("generate", "--config", "gone.yaml").exit_code == 2


def test_two_apis_cannot_be_written_to_one_file_or_over_what_is_read(folder):
    found = problems(
        folder,
        "apis: {a: {spec: x.yaml, output: o.yaml}, b: {spec: y.yaml, output: ./o.yaml}, "
        "c: {spec: x.yaml, output: toolgen.yaml}, d: {spec: z.yaml, output: y.yaml}}",
    )
    assert found == {
        "apis.b.output": "would be written over the toolset of a",
        "apis.c.output": "would be written over this file",
        "apis.d.output": "would be written over the document of b",
    }


# references to the environment


@pytest.mark.parametrize("key", ["spec", "server", "output", "namePrefix"])
def test_a_reference_elsewhere_is_refused(folder, key):
    value = {"spec": "x", key: "${env:HOME}"}
    assert f"apis.a.{key}" in problems(folder, json.dumps({"apis": {"a": value}}))


@pytest.mark.parametrize("value", ["${caller:token}", "${HOME}", "${env:}", "${env:A", "${file:/etc/passwd}"])
def test_another_reference_in_a_header_is_refused_without_showing_the_value(folder, value):
    text = f"apis: {{a: {{spec: 'http://x/y', specHeaders: {{Authorization: 's3cret {value}'}}}}}}"
    found = problems(folder, text)
    assert found.keys() == {"apis.a.specHeaders.Authorization"}
    assert "s3cret" not in str(found)


def test_a_variable_that_is_not_set_fails_only_when_it_is_used(toolgen, folder):
    header = "specHeaders: {Authorization: 'Bearer ${env:TOOLGEN_NOT_SET}'}"
    write(folder, f"apis: {{here: {{spec: petstore.yaml}}, there: {{spec: 'http://127.0.0.1:9/x', {header}}}}}")
    assert toolgen("generate", "--api", "here").exit_code == 0
    result = toolgen("generate", "--api", "there")
    assert result.exit_code == 2
    assert "TOOLGEN_NOT_SET is not set" in result.stderr


def test_headers_are_not_in_the_repr_of_a_job(folder):
    job = read_config(write(folder, "apis: {a: {spec: 'http://x/y', specHeaders: {Authorization: s3cret}}}")).jobs[0]
    assert "s3cret" not in repr(job)


def test_a_syntax_error_does_not_quote_the_file(toolgen, folder):
    write(folder, "apis:\n  a:\n    spec: http://x/y\n    specHeaders: {A: 's3cret}\n")
    for form in ("text", "json"):
        result = toolgen("generate", "--format", form)
        assert result.exit_code == 2
        assert "s3cret" not in result.output
    assert "toolgen.yaml:5:1: " in toolgen("generate").stderr


def test_limits_of_an_api_are_its_own(toolgen, folder):
    write(folder, "apis: {petstore: {spec: petstore.yaml, limits: {bytes: 1000}}}")
    assert "petstore.yaml is larger than 1000 bytes" in toolgen("generate").stderr
    write(folder, "apis: {petstore: {spec: petstore.yaml, limits: {bites: 1000, nodes: true}}}")
    result = toolgen("generate")
    assert result.exit_code == 2
    assert "apis.petstore.limits.bites: no limit; there are bytes" in result.stderr
    assert "apis.petstore.limits.nodes: expected a whole number above 0" in result.stderr


# how an API is called


def test_what_calling_needs_is_read_and_paths_are_below_the_files_folder(folder):
    (folder / "sub").mkdir()
    (folder / "sub/ca.pem").write_text("", encoding="utf-8")
    (folder / "sub/me.pem").write_text("", encoding="utf-8")
    path = write(
        folder,
        "http: {total: 5, caBundle: ca.pem, clientCertificate: {certificate: me.pem, key: me.pem}}\n"
        "apis:\n"
        "  a:\n"
        "    spec: x.yaml\n"
        "    credentials:\n"
        "      key: ${env:KEY}\n"
        "      mtls: {certificate: me.pem, key: me.pem, password: '${env:PW}'}\n"
        "      https://b.example: {mtls: {certificate: me.pem}}\n"
        "    serverVariables: {region: eu}\n"
        "    allowPrivate: [10.0.0.0/8, '::1']\n"
        "    callerReferences: false\n",
        "sub/toolgen.yaml",
    )
    config = read_config(path)
    (job,) = config.jobs
    me, key = str(folder / "sub/me.pem"), "${env:KEY}"
    assert job.credentials == {
        "key": key,
        "mtls": {"certificate": me, "key": me, "password": "${env:PW}"},
        "https://b.example": {"mtls": {"certificate": me}},
    }
    assert (job.server_variables, job.allow_private, job.caller_references) == (
        {"region": "eu"},
        ("10.0.0.0/8", "::1"),
        False,
    )
    assert config.http is not None
    assert (config.http.total, config.http.ca_bundle) == (5, str(folder / "sub/ca.pem"))
    assert config.http.client_certificate is not None
    assert config.http.client_certificate.key == me
    assert "${env" not in repr(job)


def test_a_file_without_them_has_the_defaults(folder):
    config = read_config(write(folder, "apis: {a: {spec: x}}"))
    (job,) = config.jobs
    assert config.http is None
    assert (job.credentials, job.server_variables, job.allow_private, job.caller_references) == ({}, {}, (), True)


def test_problems_of_sending_stand_with_the_others_and_have_lines(toolgen, folder):
    write(folder, "http:\n  totl: 5\n  retries: -1\napis:\n  a:\n    spec: 1\n    credentials: {k: '${x}'}\n")
    result = toolgen("generate")
    assert result.exit_code == 2
    for told in (
        "toolgen.yaml has 4 problems",
        "toolgen.yaml:2: http.totl: unknown key; did you mean 'total'?",
        "toolgen.yaml:3: http.retries: expected a whole number from 0 to 10",
        "toolgen.yaml:6: apis.a.spec: expected text",
        "toolgen.yaml:7: apis.a.credentials.k: `${...}` holds no reference",
    ):
        assert told in result.stderr
