/** Why an attempt to deliver failed. */
export const failureTexts = {
  dns: "The host name could not be resolved",
  connect: "Connection failed",
  tls: "TLS error",
  timeout: "Timed out",
  http_status: "Non-2xx response",
  redirect: "Redirect, which is not followed",
  protocol: "Not an HTTP response",
  blocked: "The address is not public",
  payload_too_large: "The event is larger than 64 KB and was not sent",
  lost: "Interrupted; will be sent again"
}
