import { strict as assert } from "node:assert"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { startOidcProvider } from "../../support/oidcProvider.ts"

/** A gateway with an OpenID provider whose tokens `/mcp` accepts, and a person who has signed in once. */
export const startOAuthGateway = async () => {
  const gateway = await GatewayProcess.start()
  const provider = await startOidcProvider({
    redirectUri: `${gateway.url}/manage/v1/session/oidc/callback`,
    inIdToken: true,
    resource: `${gateway.url}/mcp`
  })
  const email = "oauth@example.com"
  provider.be({ sub: "u1", email, email_verified: true })
  Object.assign(gateway.env, {
    OIDC_ISSUER: provider.issuer,
    OIDC_CLIENT_ID: "gateway",
    OIDC_CLIENT_SECRET: "the secret of the gateway"
  })
  await gateway.restart("SIGTERM")
  const user = await gateway.makeUser()
  await gateway.manage("PATCH", `/users/${user.id}`, { email })
  // Signing in to the console binds the person to the user with this address
  const begun = await fetch(`${gateway.url}/manage/v1/session/oidc`, { redirect: "manual" })
  const cookie = begun.headers.getSetCookie()[0]!.split(";", 1)[0]!
  const back = await provider.walk(begun.headers.get("location")!)
  const finished = await fetch(back, { headers: { cookie } })
  assert.equal(finished.status, 200, await finished.text())
  return {
    gateway,
    provider,
    close: async () => {
      await gateway.close()
      provider.stop()
    }
  }
}
