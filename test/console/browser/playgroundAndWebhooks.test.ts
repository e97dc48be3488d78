import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { deliveryHeaders } from "../../../src/webhooks/Signature.ts"
import { mockOutcome } from "../../../src/webhooks/WebhookSender.ts"
import type { WebhookRequest } from "../../../src/webhooks/WebhookSender.ts"
import { consoleGateway, operatorPage, userPage } from "../../support/consolePage.ts"
import type { ConsolePage } from "../../support/consolePage.ts"
import { act, goTo, loadedWidth, assertPage, opened } from "../../support/consoleSteps.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { png } from "../../support/media.ts"
import { Running } from "../../support/running.ts"

/** A story has many steps, and the machine may be busy. */
const timeout = 180_000
const attack = "<img src=x onerror=alert(1)>"
const hook = "https://127.0.0.1/hook"

/** What the receiver got, newest last, and its responses. */
const receiver = {
  status: 500,
  got: [] as Array<WebhookRequest>,
  answer: (request: WebhookRequest) =>
    Effect.sync(() => {
      receiver.got.push(request)
      const outcome = mockOutcome(receiver.status)
      return { ...outcome, answer: `${attack} broken`, remoteAddress: "127.0.0.1" }
    })
}

/** A picture: its live price, its run, and its program. */
const picture = async (it: ConsolePage) => {
  const { page } = it
  await goTo(it, "Playground")
  await page.getByLabel("Model").selectOption("alibaba/text-to-image-max")
  assert.include(page.url(), "model=alibaba%2Ftext-to-image-max")
  await page.getByText("Fill in the required fields").waitFor()
  await page.getByLabel("Prompt (required)").fill(`${attack} it's a lighthouse`)
  await page.getByText("7.50 credits").waitFor()
  await assertPage(it)
  const code = page.getByRole("region", { name: "Code" })
  const shell = await code.textContent()
  assert.include(shell ?? "", String.raw`it'\''s a lighthouse`)
  assert.include(shell ?? "", "$GATEWAY_API_KEY")
  await page.getByRole("button", { name: "Python" }).click()
  await code.getByText("import requests").waitFor()
  await page.getByRole("button", { name: "TypeScript" }).click()
  await code.getByText("process.env.GATEWAY_API_KEY").waitFor()
  // Followed by its stream, not by polling
  const stream = page.waitForResponse((it) => it.url().includes("/generation/"))
  await page.getByRole("button", { name: "Run", exact: true }).click()
  assert.match((await (await stream).headerValue("content-type")) ?? "", /^text\/event-stream/u)
  const image = page.getByRole("img", { name: "Result image 1" })
  await image.waitFor()
  assert.match((await image.getAttribute("src")) ?? "", /^\/artifacts\/art_/u)
  await page.getByText("Charged: 7.50 credits").waitFor()
  await assertPage(it)
  // Cancelled while it runs
  await page.getByLabel("Prompt (required)").fill("[[sim:hang]]")
  const runAgain = page.getByRole("button", { name: "Run again" })
  await runAgain.click()
  const cancel = page.getByRole("button", { name: "Cancel" })
  await cancel.waitFor()
  // Another run would cost money, and replace this one with its Cancel button
  assert.isTrue(await runAgain.isDisabled())
  await assertPage(it)
  await cancel.click()
  await page.getByText("Cancelled", { exact: true }).waitFor()
  // Waits until it can be clicked
  await runAgain.click({ trial: true })
}

/** A create whose response was lost may have succeeded, so the same run is sent again under the same key. */
const lostAnswer = async (it: ConsolePage) => {
  const { page } = it
  await goTo(it, "Playground")
  await page.getByLabel("Model").selectOption("alibaba/text-to-image-max")
  const create = /\/generation$/u
  const sent: Array<string> = []
  page.on("request", (request) => {
    if (!create.test(request.url())) return
    sent.push(request.headers()["idempotency-key"] ?? "")
  })
  await page.getByLabel("Prompt (required)").fill("A lost lighthouse")
  await page.route(create, async (route) => {
    await route.fetch()
    await route.abort()
  })
  const run = page.getByRole("button", { name: "Run", exact: true })
  await run.click()
  await page.getByRole("alert").first().waitFor()
  await page.unroute(create)
  await run.click()
  await page.getByText("Charged: 7.50 credits").waitFor()
  assert.strictEqual(sent.length, 2)
  assert.strictEqual(sent[0], sent[1])
}

/** The browser's own messages about a lost response. */
const lostLoads: ReadonlyArray<string> = ["Failed to load resource: net::ERR_FAILED"]

/** Pictures are read when `readPictures` is called. */
const slowPictures = `(() => {
  const read = globalThis.createImageBitmap
  const allowed = new Promise((resolve) => { globalThis.readPictures = resolve })
  globalThis.createImageBitmap = (file) => allowed.then(() => read(file))
})()`

/** A local picture is sent with this request and the next one. */
const media = async (it: ConsolePage) => {
  const { page } = it
  await goTo(it, "Playground")
  await page.getByLabel("Model").selectOption("alibaba/image-edit")
  await page.getByLabel("Prompt (required)").fill("A hat")
  const file = page.getByLabel(/for Images/u)
  const upload = (name: string, width: number) =>
    file.setInputFiles({
      name,
      mimeType: "image/png",
      buffer: Buffer.from(png({ width, height: 500 }))
    })
  await upload("small.png", 100)
  await page.getByText("The image has 100 × 500 px").waitFor()
  await assertPage(it)
  // While a file is read, nothing is sent, and other input is kept
  await page.evaluate(slowPictures)
  await upload(`${attack}.png`, 500)
  const prompt = page.getByLabel("Prompt (required)")
  await prompt.fill("A red hat")
  await page.getByRole("button", { name: "Run", exact: true }).click()
  assert.isTrue(await file.evaluate((it) => it.matches(":invalid:focus")))
  await page.evaluate("globalThis.readPictures()")
  await page.getByText(`${attack}.png`).first().waitFor()
  assert.strictEqual(await prompt.inputValue(), "A red hat")
  await page.getByText("Advanced").click()
  await page.getByLabel("N", { exact: true }).fill("1")
  await page.getByText(/^\d+\.\d\d credits$/u).waitFor()
  await page.getByText("<Base64 of image/png>").waitFor()
  // A field shows what the gateway would refuse before the run
  await page.getByLabel("Size", { exact: true }).fill("10*10")
  await page.locator(".field-error").waitFor()
  await assertPage(it)
  await page.getByLabel("Size", { exact: true }).fill("")
  await page.locator(".field-error").waitFor({ state: "detached" })
  await assertPage(it)
  await page.getByRole("button", { name: "Run", exact: true }).click()
  await page.getByRole("img", { name: "Result image 1" }).waitFor()
  await page.getByRole("link", { name: "View task" }).click()
  await opened(it, "A red hat")
  const input = page.getByRole("img", { name: "Input 1" })
  await input.scrollIntoViewIfNeeded()
  assert.strictEqual(await loadedWidth(input), 500)
  await assertPage(it)
  const before = page.url()
  await page.getByRole("button", { name: "Copy as test" }).click()
  await page.getByRole("button", { name: "Copied" }).waitFor()
  await page.getByRole("button", { name: "Run again" }).click()
  await page.getByRole("dialog").getByRole("button", { name: "Run again" }).click()
  await page.waitForURL((to) => to.href !== before)
  await page.getByRole("img", { name: "Result image 1" }).waitFor()
  await page.getByRole("img", { name: "Input 1" }).waitFor()
}

const hat = Buffer.from(png({ width: 40, height: 30 }))

/** Attaches a picture to the message as a person does: with the button, by pasting, or by dropping it. */
const attach = async ({ page }: ConsolePage, how: "choose" | "paste" | "drop") => {
  const file = { name: "hat.png", mimeType: "image/png", buffer: hat }
  if (how === "choose") return page.getByLabel("Attach image").setInputFiles(file)
  await page.evaluate(`(() => {
    const bytes = Uint8Array.from(atob("${hat.toString("base64")}"), (it) => it.charCodeAt(0))
    const data = new DataTransfer()
    data.items.add(new File([bytes], "hat.png", { type: "image/png" }))
    const rest = { bubbles: true, cancelable: true }
    document.querySelector(".composer textarea").dispatchEvent(
      "${how}" === "paste"
        ? new ClipboardEvent("paste", { clipboardData: data, ...rest })
        : new DragEvent("drop", { dataTransfer: data, ...rest }))
  })()`)
}

/** Pictures are sent with messages in each vendor's format, and again in the following turns of the conversation. */
const chatWithPictures = async (it: ConsolePage) => {
  const { page } = it
  await goTo(it, "Playground")
  const sent: Array<string> = []
  page.on("request", (request) => {
    if (request.method() === "POST" && request.url().includes("/vendors/")) {
      sent.push(request.postData() ?? "")
    }
  })
  const costs = page.getByText(/credits · \d+ tokens in/u)
  const message = page.getByLabel(/^Message/u)
  const data = hat.toString("base64")
  const vendors = [
    ["openai/gpt-5-mini", "choose", `{"url":"data:image/png;base64,${data}"}`],
    ["anthropic/", "paste", `{"type":"base64","media_type":"image/png","data":"${data}"}`],
    ["google/", "drop", `{"inlineData":{"mimeType":"image/png","data":"${data}"}}`]
  ] as const
  const names = await page
    .getByLabel("Model")
    .locator("option")
    .evaluateAll((all) => all.map((one) => one.getAttribute("value") ?? ""))
  for (const [vendor, how, form] of vendors) {
    const name = names.find((one) => one.startsWith(vendor) && !/embed|edit/u.test(one)) ?? ""
    await page.getByLabel("Model").selectOption(name)
    await page.getByText("Write a message.").waitFor()
    await attach(it, how)
    await page.getByRole("img", { name: "Preview" }).waitFor()
    await page
      .getByText(/<Base64 of image\/png>/u)
      .first()
      .waitFor()
    await assertPage(it)
    await message.fill("What is this?")
    await page.getByRole("button", { name: "Send" }).click()
    await costs.first().waitFor()
    assert.include(sent.at(-1), form)
    await page.getByRole("img", { name: "Attached image 1" }).waitFor()
    assert.strictEqual(await page.getByRole("img", { name: "Preview" }).count(), 0)
  }
  await assertPage(it)
  await message.fill("And now?")
  await page.getByRole("button", { name: "Send" }).click()
  await costs.nth(1).waitFor()
  assert.include(sent.at(-1), data)
  // Rejected here with a message; an attached picture can be removed
  const wrong = { name: `${attack}.txt`, mimeType: "text/plain", buffer: Buffer.from("x") }
  await page.getByLabel("Attach image").setInputFiles(wrong)
  await page.getByText(`${attack}.txt is not a PNG, JPEG or WEBP image`).waitFor()
  await attach(it, "paste")
  await page.getByRole("button", { name: "Remove hat.png" }).click()
  assert.strictEqual(await page.getByRole("img", { name: "Preview" }).count(), 0)
  await page.reload()
  await page.getByText("1 image, which is no longer sent after the reload").waitFor()
  await assertPage(it)
}

/** A streamed conversation with each vendor's model, with its cost. */
const chat = async (it: ConsolePage) => {
  const { page } = it
  await goTo(it, "Playground")
  const names = await page
    .getByLabel("Model")
    .locator("option")
    .evaluateAll((all) => all.map((one) => one.getAttribute("value") ?? ""))
  for (const vendor of ["openai/gpt-5-mini", "anthropic/", "google/"]) {
    const name = names.find((one) => one.startsWith(vendor) && !/embed|edit/u.test(one)) ?? ""
    await page.getByLabel("Model").selectOption(name)
    await page.getByText("Write a message.").waitFor()
    await page.getByLabel("Message (required)").fill(`${attack} Hello`)
    await page.getByLabel("Maximum output tokens").fill("30")
    await page.getByRole("button", { name: "Send" }).click()
    await page.getByText(/credits · \d+ tokens in, \d+ out · first token after/u).waitFor()
    const answer = await page.locator(".talk-text").nth(1).textContent()
    assert.isAbove(answer?.length ?? 0, 10, name)
  }
  await assertPage(it)
  await page.getByLabel("Message (required)").fill("And now?")
  await page.getByRole("button", { name: "Send" }).click()
  await page
    .getByText(/credits · /u)
    .nth(1)
    .waitFor()
  await page.getByRole("link", { name: "Receipt" }).first().click()
  await page.getByRole("heading", { level: 1, name: /^google\//u }).waitFor()
  await page.getByText("First token after").waitFor()
  await assertPage(it)
  const embedding = names.find((one) => one.startsWith("openai/") && one.includes("embed")) ?? ""
  await it.open(`/playground?model=${encodeURIComponent(embedding)}`)
  await page.getByText("This model returns vectors").waitFor()
  await it.open("/playground?model=nobody/nothing")
  await page.getByText("There is no model nobody/nothing").waitFor()
}

const secretShown = async ({ page }: ConsolePage) => {
  const dialog = page.getByRole("dialog", { name: "Endpoint secret" })
  const secret = await dialog.locator("code").textContent()
  await dialog.getByRole("button", { name: "Done" }).click()
  await dialog.waitFor({ state: "detached" })
  assert.match(secret ?? "", /^whsec_[\w+/]{43}=$/u)
  assert.notInclude(await page.content(), secret ?? "")
  return secret ?? ""
}

/** An endpoint from creation to deletion. */
const endpoints = async (it: ConsolePage) => {
  const { page } = it
  const dialog = page.getByRole("dialog")
  await goTo(it, "Webhooks")
  await page.getByText("No endpoints yet").waitFor()
  await assertPage(it)
  await page.getByRole("button", { name: "Add endpoint" }).click()
  await dialog.getByLabel("Address (URL)").fill("https://10.0.0.1/")
  await dialog.getByRole("button", { name: "Add endpoint" }).click()
  await dialog.getByRole("alert").getByText("Trace id").waitFor()
  // The fault of the field, once
  assert.strictEqual(
    await dialog
      .getByRole("alert")
      .getByText(/address/iu)
      .count(),
    1
  )
  assert.deepStrictEqual(await it.axeFindings(), [])
  await dialog.getByLabel("Address (URL)").fill(hook)
  await dialog.getByLabel("Description").fill(attack)
  await dialog.getByRole("button", { name: "Add endpoint" }).click()
  const first = await secretShown(it)
  await page.getByText(attack).waitFor()
  await assertPage(it)
  await act(it, hook, `Rotate secret: ${hook}`)
  await dialog.getByRole("button", { name: "Rotate secret" }).click()
  const second = await secretShown(it)
  assert.notStrictEqual(first, second)
  await page.getByText(/The old secret also signs for another 2[34] h/u).waitFor()
  await assertPage(it)
  await act(it, hook, `Pause: ${hook}`)
  await dialog.getByRole("button", { name: "Pause" }).click()
  await page.getByText("Paused", { exact: true }).waitFor()
  await act(it, hook, `Resume: ${hook}`)
  await page.getByText("Active", { exact: true }).waitFor()
  return { first, second }
}

const failingForLong = /^No attempt has succeeded for a day/u

/** An endpoint that began to fail a day ago has a different warning from one that has just begun. */
const failingForADay = async (it: ConsolePage) => {
  const { page } = it
  assert.strictEqual(await page.getByText(failingForLong).count(), 0)
  const path = /\/manage\/v1\/webhook-endpoints(?:\?|$)/u
  await page.route(path, async (route) => {
    const response = await route.fetch()
    const json = await response.json()
    const failing_since = new Date(Date.now() - 86_400_000).toISOString()
    for (const { health } of json.data) Object.assign(health, { failing_since })
    await route.fulfill({ response, json })
  })
  await goTo(it, "Home")
  await goTo(it, "Webhooks")
  await page.getByText(failingForLong).waitFor()
  await assertPage(it)
  await page.unroute(path)
}

/** A failed delivery: why it failed, and resending one, all matches, and all since a time. */
const deliveries = async (it: ConsolePage) => {
  const { page } = it
  await page.getByRole("button", { name: `Send test event: ${hook}` }).click()
  // The outcome is shown where the event was sent
  await page.getByRole("row").getByText("Test failed, HTTP 500").waitFor()
  await assertPage(it)
  await page.getByRole("link", { name: "View delivery" }).click()
  await opened(it, "task.succeeded")
  await page.getByText("Non-2xx response. Only 2xx counts as delivered.").waitFor()
  await page.getByText(`${attack} broken`).waitFor()
  await page.getByText("evt_test_").waitFor()
  await assertPage(it)
  await goTo(it, "Home")
  const failing = page.locator(".tile").filter({ hasText: "Failing webhooks" })
  await failing.getByText("1", { exact: true }).waitFor()
  await goTo(it, "Webhooks")
  await page.getByText(/^Failing: HTTP 500/u).waitFor()
  await failingForADay(it)
  // This attempt is not the last: the delivery waits for the next one
  const day = page.getByRole("slider", { name: "Last 24 hours: 1 waiting", exact: true })
  await day.focus()
  assert.match((await day.getAttribute("aria-valuetext")) ?? "", /, \d\d:00: 1 waiting$/u)
  await page.keyboard.press("ArrowLeft")
  assert.match((await day.getAttribute("aria-valuetext")) ?? "", /no deliveries$/u)
  await page.getByText(/, \d\d:00: no deliveries$/u).waitFor()
  await page.keyboard.press("End")
  await page.keyboard.press("Enter")
  await opened(it, "Deliveries")
  await page.waitForURL(/endpoint_id=whe_.*since=.*until=/u)
  await page.getByRole("row").nth(1).getByText("Waiting").waitFor()
  await goTo(it, "Webhooks")
  assert.strictEqual(await page.getByText("Active", { exact: true }).count(), 0)
  await assertPage(it)
  await page.getByRole("link", { name: hook }).click()
  await opened(it, "Deliveries")
  await page.getByRole("row").nth(1).getByRole("link").first().click()
  await opened(it, "task.succeeded")
  receiver.status = 200
  await page.getByRole("button", { name: "Resend", exact: true }).click()
  await page.getByText("The delivery will be sent again.").waitFor()
  await page.getByText("Delivered", { exact: true }).waitFor()
  await assertPage(it)
  await goTo(it, "Webhooks")
  await page.getByText("Active", { exact: true }).waitFor()
  await page.getByRole("slider", { name: "Last 24 hours: 1 delivered", exact: true }).waitFor()
  await page.getByRole("navigation", { name: "Webhook pages" }).getByText("Deliveries").click()
  await opened(it, "Deliveries")
  await page.getByRole("cell", { name: "Delivered" }).waitFor()
  await assertPage(it)
  await page.getByRole("button", { name: "Filters" }).click()
  await page.getByRole("button", { name: "Delivered", exact: true }).click()
  await page.getByLabel("Endpoint").selectOption(hook)
  await page.waitForURL(/endpoint_id=whe_/u)
  const before = receiver.got.length
  await page.getByRole("button", { name: "Resend all matches" }).click()
  await page.getByRole("dialog").getByText("are delivered").waitFor()
  await page.getByRole("dialog").getByRole("button", { name: "Resend", exact: true }).click()
  await page.getByText("1 delivery will be sent again").waitFor()
  while (receiver.got.length === before) await page.waitForTimeout(20)
  // Nothing is offered for a state that cannot be resent
  await page.getByRole("button", { name: "Waiting", exact: true }).click()
  await page.getByRole("button", { name: "Resend all matches" }).waitFor({ state: "detached" })
  await goTo(it, "Webhooks")
  await act(it, hook, `Resend failed: ${hook}`)
  await page.getByRole("dialog").getByLabel("Since").fill("2026-01-01T00:00")
  await page.getByRole("dialog").getByRole("button", { name: "Resend failed" }).click()
  await page.getByText("0 deliveries will be sent again").waitFor()
}

/** Computed in the browser: only the delivery's id leaves it. */
const debug = async (it: ConsolePage, { first, second }: Record<"first" | "second", string>) => {
  const { page } = it
  const last = receiver.got.at(-1)!
  const body = new TextDecoder().decode(last.body)
  const parts = {
    deliveryId: last.deliveryId,
    timestampSeconds: Math.floor(Date.now() / 1000),
    body: last.body
  }
  const headers = Object.entries(deliveryHeaders("Service", parts, second, first))
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n")
  const sent: Array<string> = []
  page.on("request", (request) => sent.push(request.url() + (request.postData() ?? "")))
  await page.getByRole("link", { name: "Signature debugger" }).click()
  await opened(it, "Signature debugger")
  const check = async (fields: Partial<Record<"secret" | "headers" | "body", string>>) => {
    await page.getByLabel("Secret of the endpoint").fill(fields.secret ?? second)
    await page.getByLabel("Headers as received").fill(fields.headers ?? headers)
    await page.getByLabel("Raw body as received").fill(fields.body ?? body)
    await page.getByRole("button", { name: "Check" }).click()
    await page.locator(".verdict").waitFor()
    const found = await page.getByRole("cell").allTextContents()
    return [(await page.locator(".verdict").getAttribute("class"))?.includes("good"), ...found]
  }
  assert.deepStrictEqual(await check({}), [true])
  await assertPage(it)
  const [isOldValid, ...old] = await check({ secret: first })
  assert.isTrue(isOldValid)
  assert.match(String(old[1]), /is the old secret, which is being rotated/u)
  const changed = await check({ body: JSON.stringify(JSON.parse(body), null, 1) })
  assert.isFalse(changed[0])
  assert.match(changed.join("\n"), /differs from character/u)
  assert.match((await check({ secret: second.slice(6) })).join("\n"), /lacks whsec_/u)
  assert.match((await check({ secret: ` ${second}` })).join("\n"), /white space/u)
  assert.match((await check({ secret: attack })).join("\n"), /another secret/u)
  const skewed = headers.replace(/Timestamp: \d+/u, "Timestamp: 1000")
  assert.match((await check({ headers: skewed })).join("\n"), /before it was received/u)
  assert.match((await check({ headers: "x: y" })).join("\n"), /X-Service-Webhook-Id is missing/u)
  await assertPage(it)
  assert.isFalse(sent.some((one) => one.includes(second) || one.includes(second.slice(6))))
}

const linkTo = (model: string, values: unknown) =>
  `/playground#run=${Buffer.from(JSON.stringify({ model, values })).toString("base64url")}`

/** Runs of this browser and a link fill the form again; no server receives the link's prompt. */
const runs = async (it: ConsolePage) => {
  const { page } = it
  const prompt = page.getByLabel("Prompt (required)")
  const list = page.locator(".runs li button")
  const seen: Array<string> = []
  page.on("request", (request) => seen.push(request.url()))
  await goTo(it, "Playground")
  await page.getByLabel("Model").selectOption("alibaba/text-to-image-max")
  await page.getByText("Your runs in this browser appear here.").waitFor()
  await prompt.fill(`${attack} A secret harbor`)
  await page.keyboard.press("Control+Enter")
  await page.getByText("Charged: 7.50 credits").waitFor()
  await prompt.fill("Another harbor")
  await page.getByLabel("Model").selectOption("openai/gpt-5-mini")
  await page.getByLabel("Message (required)").fill("What is a harbor?")
  await page.getByLabel("Temperature").fill("0.5")
  await page.getByRole("button", { name: "Send" }).click()
  await page.getByText(/credits · /u).waitFor()
  assert.strictEqual(await list.count(), 2)
  await assertPage(it)
  await list.filter({ hasText: "A secret harbor" }).click()
  await page.getByRole("img", { name: "Result image 1" }).waitFor()
  assert.strictEqual(await prompt.inputValue(), `${attack} A secret harbor`)
  await list.filter({ hasText: "What is a harbor?" }).click()
  await page.getByText("What is a harbor?").first().waitFor()
  assert.strictEqual(await page.getByLabel("Message (required)").inputValue(), "What is a harbor?")
  await it.open(linkTo("alibaba/text-to-image-max", { prompt: "A linked harbor", n: "x", a: [] }))
  await page.waitForURL((to) => to.hash === "" && to.searchParams.has("model"))
  await page.getByRole("region", { name: "Code" }).getByText("A linked harbor").waitFor()
  assert.strictEqual(await prompt.inputValue(), "A linked harbor")
  await page.getByText("7.50 credits").waitFor()
  await assertPage(it)
  await it.open("/playground#run=no-link")
  await page.getByRole("button", { name: "Run", exact: true }).waitFor()
  // Without the fragment, which browsers do not send
  const sent = seen.map((url) => url.split("#")[0] ?? "")
  assert.isFalse(sent.some((url) => url.includes("harbor")))
}

liveLayer(consoleGateway({}, receiver.answer), "120 seconds")(
  "the playground and the webhooks in the console",
  (it) => {
    const stories = [
      ["restore the form from a recent run or a link", runs],
      ["price, run, follow and cancel an image", picture],
      ["resend a run whose response was lost, and buy it once", lostAnswer, lostLoads],
      ["edit an image, and edit it again from the stored copy", media],
      ["chat with a model of each vendor, and show the cost", chat],
      ["chat about images in each vendor's format", chatWithPictures]
    ] as const
    for (const [name, story, faults = []] of stories) {
      it.effect(
        name,
        () =>
          Effect.gen(function* () {
            const screen = yield* userPage()
            yield* Effect.promise(() => story(screen))
            assert.deepStrictEqual(screen.faults, faults)
          }),
        timeout
      )
    }

    it.effect(
      "manage an endpoint, resend a failed delivery, and check its signature",
      () =>
        Effect.gen(function* () {
          const screen = yield* userPage()
          yield* Effect.promise(async () => {
            const secrets = await endpoints(screen)
            await deliveries(screen)
            await debug(screen, secrets)
          })
          assert.deepStrictEqual(screen.faults, [])
        }),
      timeout
    )

    it.effect(
      "fit in dark mode at 360 px, and offer a viewing operator no actions",
      () =>
        Effect.gen(function* () {
          const { userId } = yield* Running
          const screen = yield* operatorPage({ width: 360, height: 640, colorScheme: "dark" })
          yield* Effect.promise(async () => {
            const id = receiver.got[0]!.deliveryId
            for (const [path, title] of [
              ["/playground?model=alibaba%2Fimage-edit", "Playground"],
              ["/playground?model=openai%2Fgpt-5-mini", "Playground"],
              ["/webhooks", "Webhooks"],
              ["/webhooks/deliveries", "Deliveries"],
              [`/webhooks/deliveries/${id}`, "task.succeeded"],
              ["/webhooks/signature", "Signature debugger"]
            ] as const) {
              await screen.open(`${path}${path.includes("?") ? "&" : "?"}user_id=${userId}`)
              await opened(screen, title)
              await assertPage(screen)
              for (const name of ["Run", "Send", "Add endpoint", "Resend"]) {
                const button = screen.page.getByRole("button", { name, exact: true })
                assert.isTrue((await button.count()) === 0 || (await button.isDisabled()), name)
              }
            }
          })
          assert.deepStrictEqual(screen.faults, [])
        }),
      timeout
    )
  }
)
