import { spawn } from "node:child_process"
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const folder = import.meta.dirname
const packages = join(folder, "../node_modules")
const schema = join(folder, "../../../schema/openapi.json")
const compiler = join(folder, "../../../node_modules/typescript/bin/tsc")
const outputOf = (name: string) => join(folder, "made", name)

export interface Generator {
  readonly name: string
  /** Below `generated/programs`. */
  readonly program: string
  /** The arguments of `node`. Other files that the generator needs are written first. */
  readonly command: (output: string) => ReadonlyArray<string>
}

const bin = (path: string) => join(packages, path)

const json = (value: unknown) => JSON.stringify(value)

/** Writes a generator's configuration file next to its output. */
const configuration = (output: string, text: string): string => {
  const path = `${output}.config.mjs`
  writeFileSync(path, text)
  return path
}

const orval = (version: 7 | 8, path: string): Generator => ({
  name: `orval-${version}`,
  program: `orval${version}.ts`,
  command: (output) => [
    bin(path),
    "--config",
    configuration(
      output,
      `export default ${json({
        gateway: {
          input: schema,
          output: {
            target: join(output, "client.ts"),
            client: "fetch",
            override: {
              mutator: { path: join(folder, "programs/orvalFetch.ts"), name: "gatewayFetch" }
            }
          }
        }
      })}\n`
    )
  ]
})

export const generators: ReadonlyArray<Generator> = [
  {
    name: "hey-api",
    program: "heyApi.ts",
    command: (output) => [bin("@hey-api/openapi-ts/bin/run.js"), "-i", schema, "-o", output]
  },
  orval(7, "orval-7/dist/bin/orval.js"),
  orval(8, "orval/dist/bin/orval.mjs"),
  {
    name: "openapi-typescript",
    program: "openapiTypescript.ts",
    command: (output) => [
      bin("openapi-typescript/bin/cli.js"),
      schema,
      // A request may omit a field that has a default
      "--default-non-nullable",
      "false",
      "-o",
      join(output, "schema.ts")
    ]
  },
  {
    name: "kubb",
    program: "kubb.ts",
    command: (output) => [
      bin("@kubb/cli/bin/kubb.cjs"),
      "generate",
      "--config",
      configuration(
        output,
        `import { defineConfig } from "@kubb/core"
import { pluginClient } from "@kubb/plugin-client"
import { pluginOas } from "@kubb/plugin-oas"
import { pluginTs } from "@kubb/plugin-ts"
import { pluginZod } from "@kubb/plugin-zod"

export default defineConfig({
  root: ${json(folder)},
  input: { path: ${json(schema)} },
  output: { path: ${json(output)}, clean: true, format: false },
  plugins: [
    pluginOas({ generators: [] }),
    pluginTs(),
    pluginZod(),
    pluginClient({ client: "fetch", paramsType: "object" })
  ]
})
`
      )
    ]
  },
  {
    name: "openapi-zod-client",
    program: "openapiZodClient.ts",
    command: (output) => {
      mkdirSync(output, { recursive: true })
      // Its output needs the older zod that it depends on
      symlinkSync(bin("openapi-zod-client/node_modules"), join(output, "node_modules"))
      return [bin("openapi-zod-client/bin.js"), schema, "-o", join(output, "client.ts")]
    }
  }
]

/** Runs a Node program. A failure contains the output. */
const run = (words: ReadonlyArray<string>) =>
  new Promise<void>((resolve, reject) => {
    const { HOME = "", PATH = "" } = process.env
    const child = spawn(process.execPath, words, {
      // kubb also writes below its working directory
      cwd: folder,
      // Generators send no telemetry
      env: { PATH, HOME, NO_COLOR: "1", DO_NOT_TRACK: "1", KUBB_DISABLE_TELEMETRY: "1" }
    })
    let output = ""
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => (output += text))
    }
    child.once("error", reject)
    child.once("close", (status) => {
      if (status === 0) resolve()
      else reject(new Error(`${words[0]} ended with status ${status}:\n${output}`))
    })
  })

/** Generates the client again. */
export const generate = async ({ command, name }: Generator) => {
  const output = outputOf(name)
  rmSync(output, { recursive: true, force: true })
  mkdirSync(join(folder, "made"), { recursive: true })
  await run(command(output))
}

/** Compiles the generated client and the program that uses it under `strict`. */
export const compile = async ({ name, program }: Generator) => {
  const path = join(outputOf(name), "tsconfig.json")
  writeFileSync(
    path,
    json({ extends: "../../tsconfig.json", include: [".", `../../programs/${program}`] })
  )
  await run([compiler, "-p", path])
}
