import { HttpServerResponse } from "effect/http"
import { hardened } from "./DocsPage.ts"

/** A link that signs in once. The secret stands in the fragment, which browsers send to nobody. */
export const signInUrl = (baseUrl: string, token: string): string =>
  `${baseUrl}/sign-in#token=${token}`

/**
 * The token of a link is exchanged by a click only: no program that follows links uses it up, and nobody
 * is signed in by merely opening a link of somebody else.
 */
const script = `
const form = document.querySelector("form")
const fields = form.elements
const told = document.querySelector("output")
const given = new URLSearchParams(location.hash.slice(1)).get("token")
history.replaceState(null, "", location.pathname)
if (given !== null) for (const it of document.querySelectorAll("label")) it.hidden = true
form.addEventListener("submit", async (event) => {
  event.preventDefault()
  const token = given ?? fields.token.value.trim()
  const body = token === ""
    ? { email: fields.email.value, password: fields.password.value }
    : { token }
  const response = await fetch(form.dataset.to, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body)
  })
  if (response.ok) location.replace(form.dataset.next)
  else told.value = (await response.json()).detail
})
`

const head = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sign in</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 24rem; margin: 4rem auto; padding: 0 1rem }
label, button, output { display: block; margin: 1rem 0 }
label[hidden] { display: none }
input { display: block; width: 100%; font: inherit }
</style>`

const form = (basePath: string, isOidc: boolean) => `${head}
<h1>Sign in</h1>
<form data-to="${basePath}/manage/v1/session" data-next="${basePath}/">
<label>E-mail address <input name="email" type="email" autocomplete="username"></label>
<label>Password <input name="password" type="password" autocomplete="current-password"></label>
<label>Or a key or the operator's token <input name="token" type="password" autocomplete="off"></label>
<button>Sign in</button>
${isOidc ? `<p><a href="${basePath}/manage/v1/session/oidc">Sign in with your organization</a></p>` : ""}
<output></output>
</form>
<script>${script}</script>
</html>
`

const page = (html: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.setHeader(hardened(HttpServerResponse.html(html)), "cache-control", "no-store")

const pathOf = (baseUrl: string): string =>
  new URL(baseUrl).pathname.replace(/\/+$/u, "").replaceAll(/[^\w/.~%-]/gu, encodeURIComponent)

/** `/sign-in`. docs/reference/sessions.md#sign-in-links */
export const signInPage = (baseUrl: string, isOidc: boolean) => page(form(pathOf(baseUrl), isOidc))

/** Leads on from a page of ours: in a redirect from another site the browser would not send the cookie. */
export const signedInPage = (baseUrl: string) =>
  page(`${head}
<meta http-equiv="refresh" content="0;url=${pathOf(baseUrl)}/">
<h1>Signed in</h1>
<p><a href="${pathOf(baseUrl)}/">Go on</a></p>
</html>
`)
