import { DateTime, Effect, Option } from "effect"
import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs"
import { dirname, resolve } from "node:path"
import { AppConfig } from "../../config/Config.ts"
import { inspectStore, nameOfStore, opensNewStore } from "../../db/StoreTools.ts"
import { isReadable } from "../../process/heartbeat/ProcessId.ts"
import { existingMacs } from "../../process/secrets/Secrets.ts"
import { finding, ofFault } from "./Finding.ts"
import type { Finding } from "./Finding.ts"

/** The permitted deviation of a process's clock in milliseconds. docs/reference/processes.md#leases */
const skewMaxMillis = 2000

const storeSays = finding("store")

/** Checks the data folder, the store, its schema, and this machine's clock. */
export const storeFindings = Effect.gen(function* () {
  const { dataDir, database } = yield* AppConfig
  const folder = folderFinding("data folder", dataDir, "DATA_DIR")
  const isEmbedded = database._tag === "Embedded"
  if (folder.status === "broken") return [folder]
  if (isEmbedded && opensNewStore(dataDir)) {
    return [folder, storeSays("ok", `no store yet: the first start creates one in ${dataDir}`)]
  }
  return [folder, ...(yield* openedFindings(isEmbedded))]
})

const openedFindings = (isEmbedded: boolean) =>
  Effect.gen(function* () {
    const name = yield* nameOfStore
    const { lastProcess, mayMigrate, mayWrite, pending, restored, skewMillis, trouble } =
      yield* inspectStore
    const schema = finding("schema")
    return [
      Option.isSome(trouble)
        ? storeSays(
            "broken",
            `${name} accepts no writes: ${trouble.value}`,
            "Free or add what Postgres lacks"
          )
        : mayWrite
          ? storeSays("ok", `${name} can be used`)
          : storeSays(
              "broken",
              `the role of DATABASE_URL may only read ${name}`,
              "Connect as the role that owns its tables"
            ),
      pending.length === 0
        ? schema("ok", "up to date")
        : mayMigrate
          ? schema(
              "warning",
              `not applied yet: ${pending.join(", ")}`,
              "Run `gateway migrate`, or start the service"
            )
          : schema(
              "broken",
              "it must be changed, but the role of DATABASE_URL may not create tables",
              "Connect as the role that owns the database, or grant the role CREATE on its schema"
            ),
      ...restoredFindings(restored),
      ...(Option.isSome(lastProcess) ? [yield* masterKeyFinding(lastProcess.value)] : []),
      ...(isEmbedded ? [] : [clockFinding(skewMillis)])
    ]
  }).pipe(
    Effect.scoped,
    Effect.catch((error) =>
      Effect.succeed([
        / is in use by /u.test(error.message)
          ? storeSays("ok", `${error.message.split(". ")[0]}: a service is running there`)
          : ofFault("store", error.message)
      ])
    )
  )

/** Reports a store that went back in time. docs/standbys.md */
const restoredFindings = Option.match({
  onNone: () => [],
  onSome: ({
    restoredAt,
    tasksInDoubt
  }: {
    readonly restoredAt: DateTime.Utc
    readonly tasksInDoubt: number
  }) => [
    finding("restored")(
      tasksInDoubt > 0 ? "warning" : "ok",
      `the store went back in time, detected on ${DateTime.formatIso(restoredAt)}; ` +
        `${tasksInDoubt} of its tasks are still in doubt`,
      tasksInDoubt > 0
        ? "compare the vendors' bills of the lost time with `gateway reconcile`"
        : null
    )
  ]
})

/** Checks whether the master key can read what the process encrypted. docs/operating.md#rotating-master_key */
const masterKeyFinding = Effect.fnUntraced(function* (lastProcess: string) {
  const macs = yield* existingMacs
  const say = finding("master key")
  if (Option.exists(macs, (it) => isReadable(it, lastProcess))) {
    return say("ok", "it can read what the last process encrypted")
  }
  return say(
    "warning",
    Option.isSome(macs)
      ? "MASTER_KEY: the last process encrypted under a key that is not among these"
      : "MASTER_KEY: there is none, and a new one cannot read what the last process encrypted",
    "Set the key that the last process had, unless `gateway rotate-master-key` has ended since then"
  )
})

const clockFinding = (skewMillis: number): Finding => {
  const ahead = `${(Math.abs(skewMillis) / 1000).toFixed(1)} s ${skewMillis < 0 ? "behind" : "ahead of"} the store's`
  return Math.abs(skewMillis) > skewMaxMillis
    ? finding("clock")(
        "broken",
        `this machine's clock is ${ahead}`,
        "Synchronize both clocks with NTP"
      )
    : finding("clock")("ok", `this machine's clock is ${ahead}`)
}

/** A folder with less free space counts as full, because one medium may be this large. */
const freeBytesMin = 50 * 1024 * 1024

/** Checks whether the folder, or the existing folder in which it would be created, is writable. */
export const folderFinding = (check: string, path: string, variable: string): Finding => {
  const say = finding(check)
  const folder = resolve(path)
  let there = folder
  while (!existsSync(there) && dirname(there) !== there) there = dirname(there)
  if (!statSync(there).isDirectory()) {
    return say("broken", `${there} is not a folder`, `Name another one with ${variable}`)
  }
  try {
    accessSync(there, constants.W_OK)
    const { bavail, bsize } = statfsSync(there)
    if (bavail * bsize < freeBytesMin) {
      return say("broken", `the disk of ${there} is full`, "Free space on it")
    }
    return say("ok", `${folder} is writable`)
  } catch {
    return say(
      "broken",
      `${there} is not writable by this user`,
      `Give it to this user, or set ${variable}`
    )
  }
}
