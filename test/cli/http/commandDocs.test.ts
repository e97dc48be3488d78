import { assert } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { lockDataDir } from "../../../src/db/DataDirLock.ts"
import { listenerBounds } from "../../../src/http/server/listener/Listener.ts"
import { mockOutcome } from "../../../src/webhooks/WebhookSender.ts"
import { runCommand, withEnvironment } from "../../support/commandLine.ts"
import { adminToken, masterKey } from "../../support/gateway.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { localServer } from "../../support/localServer.ts"
import { Running, runningGateway } from "../../support/running.ts"
import { prepareDataDir } from "../../support/stores.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { until } from "../../support/until.ts"

/** Every sample in docs/cli.md prints what the page shows. */

const page = fileURLToPath(new URL("../../../docs/cli.md", import.meta.url))

interface Sample {
  readonly command: string
  readonly output: string
}

const samples = [
  ...readFileSync(page, "utf8").matchAll(/^```console\n\$ gateway (.*)\n([^]*?)^```/gmu)
].map(([, command = "", output = ""]): Sample => ({ command, output }))

/** Values that differ between runs. Later commands use the run's value where the page shows its own. */
const volatile = [
  /^(?:pending|delivering|succeeded)$/u,
  /^[0-9a-f]{8}-[0-9a-f-]{27}$/u,
  /^(?:key|whe|whd|evt|evt_test)_[0-9a-f]{32}[:,]?$/u,
  /^(?:sk|whsec)[-_][\w.+/=-]+$/u,
  /^\d{4}-\d\d-\d\dT[\d:.]+Z[:,;]?$/u,
  /^[0-9a-f]{32,64}\)?$/u,
  /^\/?[\w./-]+\/[\w.-]+[:,]?$/u,
  /^https?:\/\/(?:127\.0\.0\.1|localhost)[:/]\S+$/u,
  /^(?:127\.0\.0\.1|localhost):\d+$/u,
  /^\d+:$/u
]
const counts = /^\d+(?:\.\d+)?$/u

/** Splits words like a shell, for the quotes that the page uses. */
const wordsOf = (command: string) =>
  [...command.matchAll(/"([^"]*)"|(\S+)/gu)].map(([, quoted, word]) => quoted ?? word ?? "")

const folder = Effect.sync(() => temporaryFolder("docs"))

const receiver = localServer((request, response) => {
  request.resume().on("end", () => response.end("ok"))
})

liveLayer(
  runningGateway({}, listenerBounds, () => Effect.succeed(mockOutcome(200))),
  "120 seconds"
)((it) => {
  it.effect("the samples of docs/cli.md print what the page shows", () =>
    Effect.gen(function* () {
      const { key, url } = yield* Running
      const place = yield* folder
      const dataDir = join(place, "data")
      yield* Effect.promise(() => prepareDataDir(dataDir))
      yield* withEnvironment({
        DATA_DIR: dataDir,
        MASTER_KEY: masterKey,
        ADMIN_TOKEN: adminToken,
        // Vite's own variable with this name
        BASE_URL: url
      })
      const env = { GATEWAY_URL: url, GATEWAY_API_KEY: key, ADMIN_TOKEN: adminToken }
      writeFileSync(join(place, "bill.csv"), "job,model,date,amount\nx,m,2026-11-20,0.05\n")
      writeFileSync(join(place, "catalog.json"), '{"remove":["image-edit-max"]}')
      const hook = `${yield* receiver}/hook`
      const values = new Map([
        ["http://localhost:3000/hook", hook],
        ["pictures", join(place, "pictures")],
        ...["bill.csv", "catalog.json", "gateway.tar.gz"].map(
          (it) => [it, join(place, it)] as const
        )
      ])
      const argsOf = ({ command }: Sample) => wordsOf(command).map((it) => values.get(it) ?? it)
      const compare = ({ command, output }: Sample, got: string) => {
        const [said, done] = [output.trim().split(/\s+/u), got.trim().split(/\s+/u)]
        assert.lengthOf(done, said.length, `${command}\n${got}`)
        for (const [at, word] of said.entries()) {
          const own = done[at]!
          const isCounted = /^(?:backup|restore|listen)/u.test(command) && counts.test(word)
          const form = isCounted ? counts : volatile.find((it) => it.test(word) && it.test(own))
          if (form === undefined)
            assert.strictEqual(own, values.get(word) ?? word, `${command}\n${got}`)
          else if (form !== counts)
            values.set(word.replace(/[:,;)]$/u, ""), own.replace(/[:,;)]$/u, ""))
        }
      }
      const listening = samples.find(({ command }) => command.startsWith("listen"))
      const heard: Array<string> = []
      for (const sample of samples) {
        const { command } = sample
        if (sample === listening) continue
        if (command.startsWith("restore")) rmSync(dataDir, { recursive: true })
        const isMade = command.startsWith("run")
        const fiber = yield* Effect.forkChild(
          isMade
            ? runCommand(argsOf(listening!), env, (line) => heard.push(...line.split("\n")))
            : Effect.void
        )
        if (isMade) yield* Effect.promise(() => until(async () => heard[1]))
        // A running service has its store open
        const open = command === "doctor" ? lockDataDir(dataDir) : Effect.void
        const ran = yield* Effect.scoped(Effect.andThen(open, runCommand(argsOf(sample), env)))
        const isLate = command.startsWith("tasks cancel")
        assert.strictEqual(ran.code, isLate ? 1 : 0, `${command}: ${ran.error}`)
        compare(sample, isLate ? ran.error : ran.out)
        if (!isMade) continue
        yield* Effect.promise(() => until(async () => heard[3]))
        yield* Fiber.interrupt(fiber)
        compare(listening!, heard.join("\n"))
      }
    }).pipe(Effect.scoped)
  )
})
