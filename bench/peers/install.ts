/** Installs each peer with its own package manager into a separate `node_modules`, which the project never uses. */
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"

const place = (...names: ReadonlyArray<string>) => join(import.meta.dirname, ...names)

/** Runs a program to its end. The last printed line is the reason for a failure. */
const run = (folder: string, program: string, ...words: ReadonlyArray<string>): string => {
  const { error, status, stderr, stdout } = spawnSync(program, words, {
    cwd: place(folder),
    encoding: "utf8"
  })
  if (status === 0) return stdout.trim()
  const reason = error?.message ?? `${stdout}\n${stderr}`.trim().split("\n").at(-1)
  throw new Error(`${program} ${words[0]} in bench/peers/${folder}: ${reason}`)
}

/** An installed program with its version. */
export interface Installed {
  readonly version: string
  /** The command that starts it, with its arguments. */
  readonly words: ReadonlyArray<string>
}

const npm = (folder: string, name: string, program: string): Installed => {
  run(folder, "npm", "install", "--no-package-lock", "--no-audit", "--no-fund")
  const { version } = JSON.parse(
    readFileSync(place(folder, "node_modules", name, "package.json"), "utf8")
  ) as { readonly version: string }
  return { version, words: [process.execPath, place(folder, program)] }
}

const python = (...names: ReadonlyArray<string>) => place("litellm/node_modules/.python", ...names)

const litellm = () => {
  const [pip, program] = [python("bin/pip"), python("bin/litellm")]
  if (!existsSync(program)) {
    run("litellm", "python3", "-m", "venv", python())
    run("litellm", pip, "install", "--quiet", "--requirement", "requirements.txt")
  }
  const shown = run("litellm", pip, "show", "litellm")
  const field = (name: string) => new RegExp(`^${name}: (.*)`, "mu").exec(shown)?.[1] ?? ""
  return { version: field("Version"), words: [program], packages: field("Location") }
}

export const installers = {
  portkey: () => {
    const name = "@portkey-ai/gateway"
    return npm("portkey", name, `node_modules/${name}/build/start-server.js`)
  },
  "graphile-worker": () => npm("graphile-worker", "graphile-worker", "main.mjs"),
  "pg-boss": () => npm("pg-boss", "pg-boss", "main.mjs"),
  river: () => {
    run("river", "go", "build", "-o", "node_modules/river", ".")
    const module = "github.com/riverqueue/river"
    const version = run("river", "go", "list", "-m", "-f", "{{.Version}}", module)
    return { version, words: [place("river", "node_modules", "river")] }
  },
  litellm,
  /**
   * Its Postgres client is generated. `PRISMA_QUERY_ENGINE_BINARY` names an engine for machines that cannot download
   * one.
   */
  "litellm-postgres": () => {
    const { packages, ...installed } = litellm()
    const schema = join(packages, "litellm/proxy/schema.prisma")
    const engine = process.env["PRISMA_QUERY_ENGINE_BINARY"]
    Object.assign(process.env, {
      PATH: `${python("bin")}:${process.env["PATH"]}`,
      PRISMA_HOME_DIR: python(),
      // The generator and LiteLLM also ask for this engine, which only migrations need
      ...(engine === undefined ? {} : { PRISMA_SCHEMA_ENGINE_BINARY: engine })
    })
    if (!existsSync(join(packages, "prisma/client.py"))) {
      run("litellm", python("bin/prisma"), "generate", "--schema", schema)
    }
    return { ...installed, migrations: join(packages, "litellm_proxy_extras/migrations") }
  }
} satisfies Record<string, () => Installed>

export type Peer = keyof typeof installers
