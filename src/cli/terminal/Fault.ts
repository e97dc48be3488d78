import { Data, Effect, Runtime } from "effect"
import type { PlatformError, Schema } from "effect"

/** Exit codes of every command except `serve`. docs/cli.md#exit-codes */
export const exitCode = { ok: 0, failed: 1, usage: 2, interrupted: 130, brokenPipe: 141 } as const

export interface Reason {
  readonly message: string
  /** What to do about it, in one sentence. */
  readonly remedy?: string | undefined
  /** The service's response (RFC 9457). docs/reference/errors.md#problem-body */
  readonly problem?: Schema.Json | undefined
  /** Whether it is unknown if the request took effect. ADR 0218 */
  readonly isUnclear?: boolean
  /** The exit code: 1, or 2 for a usage error. */
  readonly code?: 1 | 2
  /** Whether the command's output already contains the error, so that it is not printed again. */
  readonly isPrinted?: boolean
}

/** Why a command failed. The text contains no secret. */
export class CommandFault extends Data.TaggedError("CommandFault")<Reason> {
  override readonly [Runtime.errorExitCode] = this.code ?? exitCode.failed
  override readonly [Runtime.errorReported] = false
}

export const failed = (message: string, remedy?: string) => new CommandFault({ message, remedy })

export const wrongUsage = (message: string, remedy?: string) =>
  new CommandFault({ message, remedy, code: exitCode.usage })

/** Says why a file that the user named cannot be read. */
export const namingFile = (file: string) =>
  Effect.mapError(({ reason }: PlatformError.PlatformError) =>
    wrongUsage(
      reason._tag === "NotFound"
        ? `${file} does not exist`
        : `${file} cannot be read (${reason._tag})`
    )
  )
