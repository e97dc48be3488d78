import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { version } from "../../domain/Version.ts"
import { print } from "../terminal/Output.ts"

const tools = Effect.promise(() => import("../backup/Backup.ts"))

/** docs/operating.md#backup */
export const backup = Command.make(
  "backup",
  {
    file: Argument.Path("file", { pathType: "file", mustExist: false }).pipe(
      Argument.withDescription("The archive to create, such as gateway.tar.gz; it must not exist")
    )
  },
  Effect.fnUntraced(function* ({ file }) {
    const { backup } = yield* tools
    const made = yield* backup(file, version)
    yield* print(
      made,
      [
        `Wrote ${made.file}: ${made.files} files, ${(made.bytes / 1_048_576).toFixed(1)} MiB before compression`,
        made.with_media ? "It includes media" : "Media are in a bucket and not included",
        made.with_secrets
          ? "It contains MASTER_KEY: store it where only you can read it"
          : "It does not contain MASTER_KEY: without that key a restored store is of little use"
      ].join("\n")
    )
  })
).pipe(Command.withDescription("Copy the embedded store of a stopped service into one file"))

export const restore = Command.make(
  "restore",
  {
    file: Argument.Path("file", { pathType: "file", mustExist: false }).pipe(
      Argument.withDescription("An archive created by `gateway backup`")
    )
  },
  Effect.fnUntraced(function* ({ file }) {
    const { restore } = yield* tools
    const done = yield* restore(file)
    yield* print(
      done,
      [
        `Restored ${done.data_dir} as of ${done.created_at}: ${done.files} files, all checksums correct`,
        done.applied_migrations.length === 0
          ? "Its schema is up to date"
          : `Updated its schema: ${done.applied_migrations.join(", ")}`,
        `It is marked as restored: ${done.tasks_in_doubt} unfinished tasks may have been submitted since`
      ].join("\n")
    )
  })
).pipe(Command.withDescription("Put a backup of the embedded store into an empty DATA_DIR"))
