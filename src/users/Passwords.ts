import argon2 from "@node-rs/argon2"
import { Context, Effect, Layer, Option } from "effect"
import { passwordHashesAtOnceMax, passwordHashesWaitingMax } from "../domain/limits/SignInLimits.ts"
import { Problem } from "../domain/Problem.ts"
import { FairShares } from "../domain/shares/FairShares.ts"

export interface Verdict {
  readonly isRight: boolean
  /** The password is correct, but its hash was not made with the current parameters. */
  readonly isOutdated: boolean
}

/**
 * Hashes passwords with Argon2id outside the event loop. Each hash takes 19 MiB and about 25 ms of a core, so few run
 * at a time and few may wait. ADR 0174.
 */
export class Passwords extends Context.Service<
  Passwords,
  {
    readonly hash: (password: string) => Effect.Effect<string, Problem>
    /** Verifying against `None` (unknown user or no password) takes as long as a wrong password. */
    readonly verify: (
      stored: Option.Option<string>,
      password: string
    ) => Effect.Effect<Verdict, Problem>
  }
>()("gateway/users/Passwords") {
  static readonly layer = Layer.effect(
    Passwords,
    Effect.gen(function* () {
      // All sign-ins count as one caller, because the user is not known yet
      const places = new FairShares({
        capacity: passwordHashesAtOnceMax,
        aloneMax: 1,
        queueMax: passwordHashesWaitingMax
      })
      const bounded = <A>(run: () => Promise<A>): Effect.Effect<A, Problem> =>
        Effect.catchTag(
          // A hash continues after its request was abandoned, so it keeps its place until it ends
          places.within("everybody")(Effect.uninterruptible(Effect.promise(run))),
          "ShareExhausted",
          () => busy
        )
      return Passwords.of({
        hash: (password) => bounded(() => argon2.hash(normal(password), parameters)),
        verify: (stored, password) => {
          const known = Option.getOrElse(stored, () => decoy)
          return Effect.map(
            bounded(() => argon2.verify(known, normal(password))),
            (isSame) => {
              const isRight = isSame && Option.isSome(stored)
              return { isRight, isOutdated: isRight && !known.startsWith(currentPrefix) }
            }
          )
        }
      })
    })
  )
}

const busy = Effect.fail(
  new Problem({
    code: 1201,
    detail: "Too many sign-ins at the moment: try again shortly",
    retryAfterSeconds: 1
  })
)

/** Normalizes to NFKC, so that the same password typed on another keyboard has the same code points. */
const normal = (password: string): string => password.normalize("NFKC")

/** OWASP's recommendation for Argon2id, which is the library's default algorithm. */
const parameters = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }
const currentPrefix = "$argon2id$v=19$m=19456,t=2,p=1$"

/** The hash to verify against if the user has none. */
const decoy = `${currentPrefix}ESF1QUb1sYk33NTBSwGoaA$redMPG9rt27QA6TTyvYWxXBa4L+7uLr5OaiVLjLUg14`
