import { generateKeyPairSync } from "node:crypto"
import { createServer } from "node:http"
import OidcProvider from "oidc-provider"
import { listen, stop } from "./localServer.ts"

export interface Person {
  readonly sub: string
  readonly email?: string
  readonly email_verified?: boolean
}

const resourceScopes = "inference manage"

/** A client that the provider's operator has registered. */
export const program = {
  client_id: "program",
  token_endpoint_auth_method: "none",
  redirect_uris: ["http://127.0.0.1:1/callback"]
}

/** The features for RFC 7591 and RFC 8707. */
const resourceFeatures = (resource: string) => ({
  registration: { enabled: true },
  resourceIndicators: {
    enabled: true,
    getResourceServerInfo: (_: unknown, asked: string) => {
      if (asked !== resource) throw new Error(`no resource ${asked}`)
      return {
        scope: resourceScopes,
        audience: resource,
        accessTokenFormat: "jwt",
        accessTokenTTL: 300,
        jwt: { sign: { alg: "RS256" } }
      }
    },
    useGrantedResource: () => true
  }
})

/** An OpenID provider on loopback where `person` is already signed in. */
export const startOidcProvider = async (options: {
  readonly redirectUri: string
  /** Whether the claims are in the ID token, too, rather than only in userinfo. */
  readonly inIdToken: boolean
  /** A resource with access tokens, for which any client may register. */
  readonly resource?: string
  /** Whether the published keys have the ids of the provider's keys but did not sign anything. */
  readonly hasForeignKeys?: boolean
}) => {
  const state: { person: Person } = { person: { sub: "nobody" } }
  const server = createServer()
  const issuer = `http://127.0.0.1:${await listen(server)}`
  const provider: OidcProvider = new OidcProvider(issuer, {
    clients: [
      {
        client_id: "gateway",
        client_secret: "the secret of the gateway",
        redirect_uris: [options.redirectUri]
      },
      ...(options.resource === undefined ? [] : [program])
    ],
    claims: { openid: ["sub"], email: ["email", "email_verified"] },
    conformIdTokenClaims: !options.inIdToken,
    cookies: { keys: ["test"] },
    pkce: { required: () => true },
    ...(options.resource === undefined
      ? {}
      : { scopes: ["openid", "offline_access", ...resourceScopes.split(" ")] }),
    features: {
      devInteractions: { enabled: false },
      ...(options.resource === undefined ? {} : resourceFeatures(options.resource))
    },
    interactions: { url: () => "/interaction" },
    findAccount: (_: unknown, id: string) => ({
      accountId: id,
      claims: () => ({ ...state.person, sub: id })
    }),
    loadExistingGrant: async (context: {
      oidc: { session: { accountId: string }; client: { clientId: string } }
    }) => {
      const { client, session } = context.oidc
      const grant = new provider.Grant({
        accountId: session.accountId,
        clientId: client.clientId
      })
      grant.addOIDCScope("openid email")
      if (options.resource !== undefined) {
        grant.addOIDCScope(`offline_access ${resourceScopes}`)
        grant.addResourceScope(options.resource, resourceScopes)
      }
      await grant.save()
      return grant
    }
  })
  const handle = provider.callback()
  const { publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
  const foreignKeys = {
    keys: [
      {
        ...publicKey.export({ format: "jwk" }),
        kid: "keystore-CHANGE-ME",
        use: "sig",
        alg: "RS256"
      }
    ]
  }
  server.on("request", (request, response) => {
    if (options.hasForeignKeys === true && request.url === "/jwks") {
      response.setHeader("content-type", "application/jwk-set+json")
      return void response.end(JSON.stringify(foreignKeys))
    }
    if (request.url?.startsWith("/interaction") !== true) return handle(request, response)
    const login = { accountId: state.person.sub }
    // Clients ask for consent each time
    provider
      .interactionFinished(request, response, { login, consent: {} })
      .catch(() => response.destroy())
  })
  return {
    issuer,
    be: (person: Person) => {
      state.person = person
    },
    /** Follows the provider's redirects like a browser, up to the client's own address. */
    walk: async (start: string): Promise<URL> => {
      const jar = new Map<string, string>()
      let at = start
      while (at.startsWith(issuer)) {
        const response = await fetch(at, {
          redirect: "manual",
          headers: { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join("; ") }
        })
        for (const cookie of response.headers.getSetCookie()) {
          const [name = "", value = ""] = cookie.split(";", 1)[0]?.split("=") ?? []
          jar.set(name, value)
        }
        const next = response.headers.get("location")
        if (next === null) throw new Error(`${response.status} ${await response.text()}`)
        at = new URL(next, at).href
      }
      return new URL(at)
    },
    stop: () => stop(server)
  }
}
