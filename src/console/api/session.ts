import { signal } from "@preact/signals"
import { root, viewedUser } from "../router/location.ts"
import { api, whenSignedOut } from "./client.ts"
import { forgetPages } from "./pages.ts"
import type { BodyOf, Schemas } from "./schema.ts"

export type Session = Schemas["Session"]
export type Credential = BodyOf<"POST", "/manage/v1/session">

/** `undefined`: not known yet; `null`: nobody is signed in. */
export const session = signal<Session | null | undefined>(undefined)

/** What is known before sign-in: the service's name, whether it is a sandbox, and OIDC. */
export const service = signal<Schemas["Service"] | undefined>(undefined)

/** The number of open dialogs, in which the user may have typed something. */
export const openDialogs = signal(0)

/** The session ended while a dialog was open. The user signs in again on top of it, so that no input is lost. */
export const isExpired = signal(false)

whenSignedOut(() => {
  if (session.value != null && openDialogs.value > 0) isExpired.value = true
  else session.value = null
})

/** Whether the operator sees all users rather than viewing as one. */
export const isOverAll = (): boolean =>
  session.value?.role === "operator" && viewedUser() === undefined

/** Loads the session of the cookie. If it is refused, `session` becomes `null`. */
export const loadSession = async (): Promise<void> => {
  const found = await Promise.all([
    api.GET("/manage/v1/service", {}),
    api.GET("/manage/v1/session", {}).catch((cause: unknown) => {
      if (session.value === null) return null
      throw cause
    })
  ])
  service.value = found[0]
  session.value = found[1]
}

/** The kind of credential that was typed or pasted, by its form. */
export const credentialOf = (secret: string): Credential => {
  if (secret.startsWith("sk-")) return { api_key: secret }
  return secret.includes("sil_") ? { link: secret } : { operator_token: secret }
}

/** Exchanges a credential for the session cookie, which scripts cannot read. */
export const signIn = async (body: Credential): Promise<void> => {
  const before = session.value
  const now = await api.POST("/manage/v1/session", { body })
  const isAnother = isExpired.value && before?.user?.id !== now.user?.id
  forgetPages()
  isExpired.value = false
  session.value = now
  // Reloads the page, so that nothing of the previous user stays in memory
  if (isAnother) globalThis.location.assign(root)
}

export const signOut = async (): Promise<void> => {
  await api.DELETE("/manage/v1/session", {})
  leave()
}

/** The local-storage key for the user's latest playground runs. */
export const runsKey = (): string => `console-runs ${session.value?.user?.id ?? ""}`

/** Forgets everything that was shown and typed. */
export const leave = (): void => {
  forgetPages()
  sessionStorage.clear()
  localStorage.removeItem(runsKey())
  isExpired.value = false
  session.value = null
}
