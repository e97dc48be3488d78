import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { compiled, shortLived } from "../../support/compiled.ts"
import { freePort, run } from "../../support/spawnService.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

/** Loaded before the program: sends the signal while this module is loaded, which the bundle names in a comment. */
const preload = (signal: string, file: string) =>
  `data:text/javascript,${encodeURIComponent(`
    import { registerHooks } from "node:module"
    registerHooks({
      load: (url, context, next) => {
        const loaded = next(url, context)
        if (loaded.source?.includes(${JSON.stringify(`\n// ${file}\n`)})) {
          process.kill(process.pid, "${signal}")
        }
        return loaded
      }
    })`)}`

/** Each program with a module that it loads. */
const programs = [
  ["the service", ["src/main.ts"], "src/cli/Service.ts"],
  ["the service, late", ["src/main.ts"], "src/cli/Shutdown.ts"],
  ["gateway serve", ["src/cli/gateway.ts", "serve"], "src/cli/CommandLine.ts"]
] as const

describe("a stop signal while the program is loading", () => {
  it.each(programs)(
    "stops %s with status 0",
    { timeout: 180_000 },
    async (_, [main, ...words], file) => {
      const program = await compiled(main)
      for (const signal of ["SIGTERM", "SIGINT"]) {
        const service = run(process.execPath, [...shortLived, program, ...words], {
          NODE_OPTIONS: `--import=${preload(signal, file)}`,
          PORT: String(await freePort()),
          DATA_DIR: join(temporaryFolder("signal"), "data")
        })
        assert.strictEqual(await service.ended, 0, `${signal}: ${service.output()}`)
        assert.notInclude(service.output(), "Listening")
      }
    }
  )
})
