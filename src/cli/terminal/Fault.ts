import { Data, Runtime } from "effect"
import type { Schema } from "effect"

/** Exit codes of every command but `serve`. docs/cli.md#exit-codes */
export const exitCode = { ok: 0, failed: 1, usage: 2, interrupted: 130, brokenPipe: 141 } as const

export interface Reason {
  readonly message: string
  /** What to do about it, as one sentence. */
  readonly remedy?: string | undefined
  /** What the service answered (RFC 9457). docs/reference/errors.md#problem-body */
  readonly problem?: Schema.Json | undefined
  /** What the request did is not known. ADR 0218 */
  readonly isUnclear?: boolean
  /** 1, or 2 for a command that cannot be understood. */
  readonly code?: 1 | 2
  /** The document of the command says it already: none of the error is printed. */
  readonly isPrinted?: boolean
}

/** Why a command failed; its text has no secret. */
export class CommandFault extends Data.TaggedError("CommandFault")<Reason> {
  override readonly [Runtime.errorExitCode] = this.code ?? exitCode.failed
  override readonly [Runtime.errorReported] = false
}

export const failed = (message: string, remedy?: string) => new CommandFault({ message, remedy })

export const wrongUsage = (message: string, remedy?: string) =>
  new CommandFault({ message, remedy, code: exitCode.usage })
