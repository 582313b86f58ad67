variable "keys" { type = map(number) }
variable "tag" { type = string }
variable "inner" { type = number }
variable "many" { type = number }

resource "terraform_data" "plain" { input = "hello ${var.tag}" }

resource "terraform_data" "each" {
  for_each = var.keys
  input    = { key = each.key, value = each.value, big = 12345678901234567890, frac = 1.50, html = "<a href='x'>&</a>" }
}

resource "terraform_data" "many" {
  count      = var.many
  input      = [count.index, "x", null, true]
  depends_on = [terraform_data.plain]
}

module "m" {
  source = "./module"
  n      = var.inner
  tag    = var.tag
}

module "each" {
  for_each = toset(["eu-1", "us \"2\"", "ünï ☃"])
  source   = "./module"
  n        = 1
  tag      = each.key
}

output "plain" { value = terraform_data.plain.output }
output "secret" {
  value     = "hunter2 ${terraform_data.plain.id}"
  sensitive = true
}
output "ids" { value = module.m.ids }
output "weird-ünï_9" { value = { for k, v in terraform_data.each : k => v.output } }
