import { Cause, Console, Effect, Exit, Runtime } from "effect"
import { CliConfig, CliError, CliOutput, Command, GlobalFlag } from "effect/cli"
import { version } from "../domain/Version.ts"
import { backup, restore } from "./commands/backup.ts"
import { catalog } from "./commands/catalog.ts"
import { doctor } from "./commands/doctor.ts"
import { endpoints } from "./commands/endpoints.ts"
import { keys } from "./commands/keys.ts"
import { listen } from "./commands/listen.ts"
import { rotateMasterKeyCommand } from "./commands/masterKey.ts"
import { migrate } from "./commands/migrate.ts"
import { models } from "./commands/models.ts"
import { rebuildUsage, reconcile } from "./commands/operator.ts"
import { redeliver } from "./commands/redeliver.ts"
import { runModel } from "./commands/run.ts"
import { serve } from "./commands/serve.ts"
import { store } from "./commands/store.ts"
import { tasks } from "./commands/tasks.ts"
import { topUp } from "./commands/topUp.ts"
import { users } from "./commands/users.ts"
import { vendors } from "./commands/vendors.ts"
import { wallet } from "./commands/wallet.ts"
import { CommandFault, exitCode, wrongUsage } from "./terminal/Fault.ts"
import { settings } from "./terminal/Settings.ts"
import { plainText } from "./terminal/Table.ts"

/** The root command. docs/cli.md */
export const gateway = Command.make("gateway").pipe(
  Command.withDescription("Run a Generation Gateway, or work with one"),
  Command.withSubcommands([
    {
      group: "Service",
      commands: [
        serve,
        migrate,
        doctor,
        backup,
        restore,
        store,
        rotateMasterKeyCommand,
        catalog,
        vendors
      ]
    },
    {
      group: "Use",
      commands: [runModel, models, tasks, wallet, keys, endpoints, listen, redeliver]
    },
    { group: "Operator", commands: [users, topUp, reconcile, rebuildUsage] }
  ]),
  Command.withGlobalFlags(settings)
)

/** Prints usage errors to stderr with a pointer to the help, which is printed only on request. */
const presenter: CliOutput.Presenter = {
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? Console.error(
          [
            ...event.errors.map((error) => `Error: ${error.message}`),
            `Usage: ${event.helpDoc.usage}`,
            `All options: ${event.commandPath.join(" ")} --help`
          ].join("\n")
        )
      : CliOutput.defaultPresenter.present(event)
}

const builtIns = [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions]

/** Prints the error to stderr, or with `--json` its document to stdout. docs/cli.md#json */
const report = (isJson: boolean) =>
  Effect.fnUntraced(function* (fault: CommandFault) {
    const { code = exitCode.failed, isPrinted, message, problem = null, remedy } = fault
    // A refusal may quote names that other people chose
    yield* Console.error(`Error: ${message.split("\n").map(plainText).join("\n")}`)
    if (remedy !== undefined) yield* Console.error(`Remedy: ${plainText(remedy)}`)
    if (!isJson || isPrinted === true || code === exitCode.usage) return
    const error = { message, remedy: remedy ?? null, exit_code: code, problem }
    yield* Console.log(JSON.stringify({ error }, null, 2))
  })

/**
 * An argument such as `-5 degrees, hoar frost`, which would be read as short flags, among them `-h`: the command would
 * print its help and succeed without having done anything.
 */
const hyphenated = (args: ReadonlyArray<string>): string | undefined => {
  const end = args.indexOf("--")
  return args
    .slice(0, end < 0 ? args.length : end)
    .find((it) => /^-[^-]./su.test(it) && !/^-[\d.]+$/u.test(it))
}

/** Runs one command, from its arguments to its exit code. */
export const run = (args: ReadonlyArray<string>) =>
  Effect.suspend(() => {
    const text = hyphenated(args)
    return text === undefined
      ? Command.runWith(gateway, { version })(args)
      : wrongUsage(
          `${JSON.stringify(text)} begins with a hyphen, like a flag`,
          "Write such a text after --, or after the flag and =, as in --name=-x"
        )
  }).pipe(
    Effect.tapError((error) =>
      error instanceof CommandFault ? report(args.includes("--json"))(error) : Effect.void
    ),
    Effect.provideService(CliOutput.Presenter, presenter),
    Effect.provideService(CliConfig.CliConfig, CliConfig.make({ builtIns }))
  )

/** Ends the process with an exit code from docs/cli.md#exit-codes. */
export const teardown: Runtime.Teardown = (exit, onExit) => {
  if (Exit.isSuccess(exit)) return onExit(exitCode.ok)
  const error = Cause.squash(exit.cause)
  if (Cause.hasInterruptsOnly(exit.cause)) return onExit(exitCode.interrupted)
  if (CliError.isCliError(error)) {
    const isHelp = error._tag === "ShowHelp" && error.errors.length === 0
    return onExit(isHelp ? exitCode.ok : exitCode.usage)
  }
  if (!(error instanceof CommandFault)) {
    globalThis.process.stderr.write(`${Cause.pretty(exit.cause)}\n`)
  }
  onExit(Runtime.getErrorExitCode(error))
}
