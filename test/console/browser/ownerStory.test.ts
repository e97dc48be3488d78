import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { getCACertificates, setDefaultCACertificates } from "node:tls"
import { afterAll } from "vitest"
import { consoleGateway, consolePage, signInOnPage } from "../../support/consolePage.ts"
import type { ConsolePage } from "../../support/consolePage.ts"
import { act, goTo, hostile, loadedWidth, assertPage, opened } from "../../support/consoleSteps.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { Running } from "../../support/running.ts"
import { startReceiver } from "../../support/webhookReceiver.ts"

/** A receiver with a fault that its owner fixes; the gateway trusts its certificate. */
let isMended = false
const receiver = await startReceiver(() =>
  isMended ? 200 : { status: 500, text: hostile("no database") }
)
const trusted = getCACertificates("default")
setDefaultCACertificates([...trusted, receiver.ca])
afterAll(async () => {
  setDefaultCACertificates(trusted)
  await receiver[Symbol.asyncDispose]()
})

const model = "text-to-image-max"

/** The response to the owner's program. */
const create = async (url: string, key: string) => {
  const response = await fetch(`${url}/vendors/alibaba/v1/${model}/generation`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ prompt: hostile("A lighthouse") })
  })
  await response.text()
  return response.status
}

const makeKey = async (it: ConsolePage) => {
  const { page } = it
  const dialog = page.getByRole("dialog")
  await goTo(it, "Keys")
  await page.getByRole("button", { name: "Create key" }).click()
  await dialog.getByLabel("Name").fill("program")
  await dialog.getByText("Limits, models and expiry").click()
  await dialog.getByLabel("Budget in credits").fill("8")
  await dialog.getByRole("button", { name: "Create key" }).click()
  const secret = await dialog.locator("code").first().textContent()
  await dialog.getByRole("button", { name: "Done" }).click()
  return secret ?? ""
}

const picture = async (it: ConsolePage) => {
  const { page } = it
  await goTo(it, "Playground")
  await page.getByLabel("Model").selectOption(`alibaba/${model}`)
  await page.getByLabel("Prompt (required)").fill("A lighthouse at dawn")
  await page.getByText("7.50 credits").first().waitFor()
  await page.getByRole("button", { name: "Run", exact: true }).click()
  const image = page.getByRole("img", { name: "Result image 1" })
  await loadedWidth(image)
  await page.getByText("Charged: 7.50 credits").waitFor()
}

/** The delivery fails, the page says why, the receiver is fixed, and the delivery is resent. */
const webhook = async (it: ConsolePage, url: string, key: string) => {
  const { page } = it
  const dialog = page.getByRole("dialog")
  await goTo(it, "Webhooks")
  await page.getByRole("button", { name: "Add endpoint" }).click()
  await dialog.getByLabel("Address (URL)").fill(receiver.url)
  await dialog.getByRole("button", { name: "Add endpoint" }).click()
  await dialog.getByRole("button", { name: "Done" }).click()
  assert.strictEqual(await create(url, key), 202)
  await page.getByRole("navigation", { name: "Webhook pages" }).getByText("Deliveries").click()
  await opened(it, "Deliveries")
  // It appears automatically
  await page.getByRole("table").getByRole("link").first().click()
  await page.getByRole("heading", { level: 1, name: /^task\./u }).waitFor()
  await page.getByText("Non-2xx response. Only 2xx counts as delivered.").waitFor()
  await page.getByText(hostile("no database")).waitFor()
  await assertPage(it)
  isMended = true
  await page.getByRole("button", { name: "Resend", exact: true }).click()
  await page.getByText("Delivered", { exact: true }).waitFor()
}

/** The program's budget is used up, then the balance; the operator helps, and the page is updated. */
const spent = async (it: ConsolePage, operator: ConsolePage, url: string, key: string) => {
  const { page } = it
  await goTo(it, "Keys")
  await page.getByRole("cell", { name: "0.50 left" }).waitFor()
  assert.strictEqual(await create(url, key), 402)
  await goTo(it, "Playground")
  await page.getByLabel("Model").selectOption(`alibaba/${model}`)
  await page.getByLabel("Prompt (required)").fill("Another lighthouse")
  await page.getByRole("button", { name: "Run", exact: true }).click()
  await page.getByRole("alert").getByText("Code 1101").waitFor()
  await assertPage(it)
  const dialog = operator.page.getByRole("dialog")
  await operator.page.getByRole("button", { name: "Top up" }).click()
  await dialog.getByLabel("Amount").fill("100")
  await dialog.getByRole("button", { name: "Top up" }).click()
  await dialog.waitFor({ state: "detached" })
  await page.getByRole("banner").getByText("105.00").waitFor()
  await page.getByRole("button", { name: "Run", exact: true }).click()
  await page.getByRole("img", { name: "Result image 1" }).waitFor()
  await goTo(it, "Home")
  await page.getByText("97.50", { exact: true }).first().waitFor()
  await goTo(it, "Tasks")
  await page.getByRole("cell", { name: "Completed" }).nth(2).waitFor()
}

liveLayer(consoleGateway({ EGRESS_ALLOW: "127.0.0.0/8,::1,localhost" }), "120 seconds")(
  "the story of a new owner",
  (it) => {
    it.effect(
      "goes from the link to a key, an image, a resent delivery, and an exhausted budget and balance",
      () =>
        Effect.gen(function* () {
          const { url } = yield* Running
          const operator = yield* consolePage()
          const owner = yield* consolePage()
          yield* signInOnPage(operator, null)
          yield* Effect.promise(async () => {
            const { page } = operator
            const dialog = page.getByRole("dialog")
            await goTo(operator, "Users")
            await page.getByRole("button", { name: "Create user" }).click()
            await dialog.getByLabel("E-mail address").fill("new@example.com")
            await dialog.getByRole("button", { name: "Create user" }).click()
            await opened(operator, "new@example.com")
            await page.getByRole("button", { name: "Top up" }).click()
            await dialog.getByLabel("Amount").fill("20")
            await dialog.getByRole("button", { name: "Top up" }).click()
            await page.getByText("20.00", { exact: true }).first().waitFor()
            await act(operator, "new@example.com", "Sign-in link")
            await dialog.getByRole("button", { name: "Make a link" }).click()
            const link = await dialog.locator("code").textContent()
            await dialog.getByRole("button", { name: "Done" }).click()
            await owner.page.goto(link ?? "")
            await owner.page.getByRole("button", { name: "Sign in with this link" }).click()
            await owner.page.getByText("Create your first image").waitFor()
            const key = await makeKey(owner)
            await picture(owner)
            await webhook(owner, url, key)
            await spent(owner, operator, url, key)
          })
          assert.deepStrictEqual([...owner.faults, ...operator.faults], [])
          const [first] = receiver.received
          assert.strictEqual(first?.event.type, "task.succeeded")
          const same = receiver.received.filter((it) => it.deliveryId === first?.deliveryId)
          assert.isAtLeast(same.length, 2)
          assert.strictEqual(same[1]?.body, first?.body)
        }),
      180_000
    )
  }
)
