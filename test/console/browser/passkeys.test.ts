import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { consoleGateway, userPage } from "../../support/consolePage.ts"
import type { ConsolePage } from "../../support/consolePage.ts"
import { goTo, hostile, assertPage, opened, signOut, tabTo } from "../../support/consoleSteps.ts"
import { liveLayer } from "../../support/liveLayer.ts"

/** docs/reference/sessions.md#passkeys, with an authenticator that the browser itself plays. */

/**
 * A device with a screen lock, which the person unlocks or not. It belongs to the document, because on a busy machine
 * it may be gone after the page was reloaded.
 */
const addAuthenticator = async ({ context, page }: ConsolePage) => {
  const session = await context.newCDPSession(page)
  await session.send("WebAuthn.enable")
  const { authenticatorId } = await session.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true
    }
  })
  const unlocks = (isUserVerified: boolean) =>
    session.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified })
  const count = async () =>
    (await session.send("WebAuthn.getCredentials", { authenticatorId })).credentials.length
  return { count, unlocks }
}

const ways = { name: "Sign in with a passkey" }

const addOne = async ({ page }: ConsolePage, name: string) => {
  const dialog = page.getByRole("dialog", { name: "Add a passkey" })
  await page.getByRole("button", { name: "Add passkey" }).click()
  await dialog.getByLabel("Name").fill(name)
  await dialog.getByRole("button", { name: "Add passkey" }).click()
  return dialog
}

const story = async (it: ConsolePage) => {
  const { page } = it
  await it.open("/sessions")
  await page.getByText("No passkeys").waitFor()
  const device = await addAuthenticator(it)
  await assertPage(it)
  // The device stays locked: nothing is created, and the input stays
  await device.unlocks(false)
  const dialog = await addOne(it, hostile("Laptop"))
  await dialog.getByRole("alert").getByText("No passkey was made").waitFor()
  assert.deepStrictEqual(await it.axeFindings(), [])
  assert.strictEqual(await device.count(), 0)
  await device.unlocks(true)
  await dialog.getByRole("button", { name: "Add passkey" }).click()
  await dialog.waitFor({ state: "detached" })
  const row = page.getByRole("row").filter({ hasText: hostile("Laptop") })
  await row.waitFor()
  assert.strictEqual(await device.count(), 1)
  await assertPage(it)
  // The device already has its one passkey
  const again = await addOne(it, "Twice")
  await again.getByRole("alert").waitFor()
  await page.keyboard.press("Escape")
  await signOut(it)
  await opened(it, "Sign in")
  await assertPage(it)
  await device.unlocks(false)
  await page.getByRole("button", ways).click()
  await page.getByRole("alert").getByText("No passkey was used").waitFor()
  assert.deepStrictEqual(await it.axeFindings(), [])
  await device.unlocks(true)
  // Using only the keyboard
  await tabTo(it, /^BUTTON .*Sign in with a passkey/u)
  await page.keyboard.press("Enter")
  await page.getByRole("banner").waitFor()
  const menu = page.getByRole("button", { name: "Menu", exact: true })
  if (await menu.isVisible()) await menu.click()
  await goTo(it, "Sessions")
  await page.getByRole("row").filter({ hasText: "This session" }).getByText("Passkey").waitFor()
  await row.getByText("now").first().waitFor()
  await page.getByRole("button", { name: `Remove the passkey ${hostile("Laptop")}` }).click()
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click()
  await page.getByText("No passkeys").waitFor()
  await signOut(it)
  await opened(it, "Sign in")
  // The device still has it, but the gateway does not
  await page.getByRole("button", ways).click()
  await page.getByText("Sign-in refused").waitFor()
  await assertPage(it)
}

liveLayer(consoleGateway({}, undefined, "localhost"), "120 seconds")(
  "passkeys in the console",
  (it) => {
    for (const [width, colorScheme] of [
      [1440, "light"],
      [390, "dark"]
    ] as const) {
      it.effect(
        `are created, used and removed at ${width} px, ${colorScheme}`,
        () =>
          Effect.gen(function* () {
            const screen = yield* userPage({ width, height: 900, colorScheme })
            yield* Effect.promise(() => story(screen))
            assert.deepStrictEqual(screen.faults, [])
          }),
        180_000
      )
    }
  }
)
