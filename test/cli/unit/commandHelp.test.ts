import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Completions } from "effect/cli"
import type { Command } from "effect/cli"
import { describe, expect } from "vitest"
import packageJson from "../../../package.json" with { type: "json" }
import { gateway } from "../../../src/cli/Program.ts"
import { version } from "../../../src/domain/Version.ts"
import { runCommand } from "../../support/commandLine.ts"

/** docs/cli.md */

const pathsOf = (command: Command.Command.Any): ReadonlyArray<ReadonlyArray<string>> => [
  [],
  ...command.subcommands.flatMap(({ commands }) =>
    commands.flatMap((it) => pathsOf(it).map((path) => [it.name].concat(path)))
  )
]

describe("the help of gateway", () => {
  it.effect("is unchanged for every command", () =>
    Effect.gen(function* () {
      for (const path of pathsOf(gateway)) {
        const { code, error, out } = yield* runCommand([...path, "--help"])
        assert.deepStrictEqual([code, error], [0, ""], path.join(" "))
        // The same for all commands, so it is shown once
        const own = path.length === 0 ? out : out.replace(/GLOBAL FLAGS\n[\s\S]*?\n\n/u, "")
        expect(own.replaceAll(/ +$/gmu, "")).toMatchSnapshot(["gateway", ...path].join(" "))
      }
    })
  )

  it.effect("includes the version, and completions for bash, zsh and fish", () =>
    Effect.gen(function* () {
      assert.strictEqual(version, packageJson.version)
      assert.strictEqual((yield* runCommand(["--version"])).out, `gateway v${version}`)
      for (const shell of ["bash", "zsh", "fish"] as const) {
        const { code, out } = yield* runCommand(["--completions", shell])
        assert.strictEqual(code, 0)
        assert.include(out, "redeliver")
        assert.include(out, "idempotency-key")
        const made = Completions.generate("gateway", shell, Completions.fromCommand(gateway))
        assert.strictEqual(out, made)
      }
    })
  )
})
