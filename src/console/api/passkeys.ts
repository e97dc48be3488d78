import { api } from "./client.ts"
import { service, signIn } from "./session.ts"

/** The user closed the browser's dialog, or the device has no matching passkey. */
export class NoPasskey extends Error {}

/** Whether passkeys work here: the gateway has a host name, and the browser supports WebAuthn's JSON form. */
export const hasPasskeys = (): boolean =>
  service.value?.passkeys === true &&
  "PublicKeyCredential" in globalThis &&
  "parseRequestOptionsFromJSON" in PublicKeyCredential

/** The browser's answer as JSON, without members that the gateway does not read. */
export const answerOf = async (ask: Promise<Credential | null>) => {
  const credential = await ask.catch((cause: unknown) => {
    throw new NoPasskey("No passkey", { cause })
  })
  if (!(credential instanceof PublicKeyCredential)) throw new NoPasskey("No passkey")
  return credential.toJSON()
}

export const signInWithPasskey = async (): Promise<void> => {
  const options = await api.GET("/manage/v1/session/passkey", {})
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options)
  const { id, rawId, response } = await answerOf(navigator.credentials.get({ publicKey }))
  if (!("signature" in response)) throw new NoPasskey("No passkey")
  const { authenticatorData, clientDataJSON, signature, userHandle = null } = response
  await signIn({
    passkey: {
      id,
      rawId,
      type: "public-key",
      response: { authenticatorData, clientDataJSON, signature, userHandle }
    }
  })
}
