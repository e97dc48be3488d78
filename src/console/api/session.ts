import { signal } from "@preact/signals"
import { root, viewedUser } from "../router/location.ts"
import { api, dataOf, whenSignedOut } from "./client.ts"
import { forgetPages } from "./pages.ts"
import type { Schemas } from "./schema.ts"

export type Session = Schemas["Session"]

/** `undefined`: not known yet; `null`: nobody is signed in. */
export const session = signal<Session | null | undefined>(undefined)

/** What may be known before sign-in: the name of the service, sandbox, OIDC. */
export const service = signal<Schemas["Service"] | undefined>(undefined)

/** How many dialogs are open, in which something may be typed. */
export const openDialogs = signal(0)

/** The session has ended under an open dialog: one signs in again above it, and nothing is lost. */
export const isExpired = signal(false)

whenSignedOut(() => {
  if (session.value != null && openDialogs.value > 0) isExpired.value = true
  else session.value = null
})

/** The operator looks at all users, and views as none. */
export const isOverAll = (): boolean =>
  session.value?.role === "operator" && viewedUser() === undefined

/** Who is signed in, by the cookie. A refusal sets `session` to `null`. */
export const loadSession = async (): Promise<void> => {
  const found = await Promise.all([
    dataOf(api.GET("/manage/v1/service", {})),
    dataOf(api.GET("/manage/v1/session", {})).catch((cause: unknown) => {
      if (session.value === null) return null
      throw cause
    })
  ])
  service.value = found[0]
  session.value = found[1]
}

export type Credential =
  | { readonly email: string; readonly password: string }
  | { readonly api_key: string }
  | { readonly operator_token: string }
  | { readonly link: string }
  | { readonly passkey: Schemas["PasskeyAssertion"] }

/** A secret that somebody has typed or pasted, by its form. */
export const credentialOf = (secret: string): Credential => {
  if (secret.startsWith("sk-")) return { api_key: secret }
  return secret.includes("sil_") ? { link: secret } : { operator_token: secret }
}

/** Exchanges it for the cookie, which scripts cannot read. */
export const signIn = async (body: Credential): Promise<void> => {
  const before = session.value
  const now = await dataOf(api.POST("/manage/v1/session", { body }))
  const isAnother = isExpired.value && before?.user?.id !== now.user?.id
  forgetPages()
  isExpired.value = false
  session.value = now
  // Nothing of the one who was signed in stays
  if (isAnother) globalThis.location.assign(root)
}

export const signOut = async (): Promise<void> => {
  await dataOf(api.DELETE("/manage/v1/session", {}))
  leave()
}

/** Where the browser keeps the user's last runs of the playground. */
export const runsKey = (): string => `console-runs ${session.value?.user?.id ?? ""}`

/** Forgets what was shown and typed. */
export const leave = (): void => {
  forgetPages()
  sessionStorage.clear()
  localStorage.removeItem(runsKey())
  isExpired.value = false
  session.value = null
}
