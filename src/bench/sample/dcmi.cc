// Ascend's device management library, DCMI. The few functions used are declared here, after the
// driver's public dcmi_interface_api.h.
#include <array>
#include <utility>

#include "base/status_macros.h"
#include "bench/sample/device_source.h"
#include "bench/sample/driver_library.h"

namespace fulgur::bench {
namespace {

struct HbmInfo {
  unsigned long long memory_size;
  unsigned int freq;
  unsigned long long memory_usage;
  int temp;
  unsigned int bandwidth_util_rate;
};

struct ChipInfo {
  unsigned char chip_type[32];
  unsigned char chip_name[32];
  unsigned char chip_ver[32];
  unsigned int aicore_cnt;
};

constexpr int kMaxCards = 64;
constexpr int kAiCoreRate = 2;  // input_type of dcmi_get_device_utilization_rate
constexpr double kPowerUnitsPerW = 10;

// No device has 4 TB: such a number is in KB, as old drivers for some products count.
constexpr double kLargestMemoryMb = 4 << 20;

double InMegabytes(unsigned long long size, unsigned long long total) {
  const double kb_per_unit = static_cast<double>(total) > kLargestMemoryMb ? 1024.0 : 1.0;
  return static_cast<double>(size) / kb_per_unit;
}

struct Functions {
  int (*init)();
  int (*card_list)(int*, int*, int);
  int (*device_count)(int, int*);
  int (*utilization)(int, int, int, unsigned int*);
  int (*hbm)(int, int, HbmInfo*);
  int (*power)(int, int, int*);
  int (*temperature)(int, int, int*);
  int (*chip_info)(int, int, ChipInfo*);
  int (*logic_id)(int*, int, int);
  int (*physical_id)(unsigned int, unsigned int*);
};

absl::StatusOr<Functions> Load(const DriverLibrary& library) {
  Functions f{};
  f.init = library.Find<int()>("dcmi_init");
  f.card_list = library.Find<int(int*, int*, int)>("dcmi_get_card_list");
  if (f.card_list == nullptr) {
    f.card_list = library.Find<int(int*, int*, int)>("dcmi_get_card_num_list");
  }
  f.device_count = library.Find<int(int, int*)>("dcmi_get_device_num_in_card");
  f.utilization =
      library.Find<int(int, int, int, unsigned int*)>("dcmi_get_device_utilization_rate");
  f.hbm = library.Find<int(int, int, HbmInfo*)>("dcmi_get_device_hbm_info");
  f.power = library.Find<int(int, int, int*)>("dcmi_get_device_power_info");
  f.temperature = library.Find<int(int, int, int*)>("dcmi_get_device_temperature");
  f.chip_info = library.Find<int(int, int, ChipInfo*)>("dcmi_get_device_chip_info");
  f.logic_id = library.Find<int(int*, int, int)>("dcmi_get_device_logic_id");
  f.physical_id =
      library.Find<int(unsigned int, unsigned int*)>("dcmi_get_device_phyid_from_logicid");
  if (f.init == nullptr || f.card_list == nullptr || f.device_count == nullptr ||
      f.utilization == nullptr) {
    return absl::NotFoundError("libdcmi.so lacks the functions that list and read devices");
  }
  return f;
}

std::string Text(const unsigned char (&bytes)[32]) {
  std::string text;
  for (unsigned char byte : bytes) {
    if (byte == 0) break;
    text.push_back(static_cast<char>(byte));
  }
  return text;
}

class DcmiSource : public DeviceSource {
 public:
  explicit DcmiSource(const Functions& functions) : f_(functions) {}

  // Lists the chips of all cards.
  absl::Status Enumerate() {
    if (const int code = f_.init(); code != 0) {
      return absl::NotFoundError(fmt::format("dcmi_init failed with code {}", code));
    }
    int num_cards = 0;
    std::array<int, kMaxCards> cards{};
    if (const int code = f_.card_list(&num_cards, cards.data(), kMaxCards); code != 0) {
      return absl::NotFoundError(fmt::format("dcmi_get_card_list failed with code {}", code));
    }
    for (int i = 0; i < num_cards && i < kMaxCards; ++i) {
      int num_chips = 0;
      if (f_.device_count(cards[static_cast<size_t>(i)], &num_chips) != 0) continue;
      for (int chip = 0; chip < num_chips; ++chip) Add(cards[static_cast<size_t>(i)], chip);
    }
    if (devices_.empty()) return absl::NotFoundError("DCMI lists no device");
    return absl::OkStatus();
  }

  std::string name() const override { return "dcmi"; }
  const std::vector<SampledDevice>& devices() const override { return devices_; }

  absl::StatusOr<std::vector<DeviceReading>> Read() override {
    std::vector<DeviceReading> readings;
    for (const SampledDevice& device : devices_) {
      readings.push_back(ReadOne(*device.card, *device.chip));
    }
    return readings;
  }

 private:
  void Add(int card, int chip) {
    SampledDevice device;
    device.id = static_cast<int>(devices_.size());
    device.kind = "ascend";
    device.card = card;
    device.chip = chip;
    if (ChipInfo info{}; f_.chip_info != nullptr && f_.chip_info(card, chip, &info) == 0) {
      device.name = Text(info.chip_type) + Text(info.chip_name);
    }
    if (HbmInfo hbm{}; f_.hbm != nullptr && f_.hbm(card, chip, &hbm) == 0) {
      device.memory_total_mb = InMegabytes(hbm.memory_size, hbm.memory_size);
    }
    int logic = 0;
    unsigned int physical = 0;
    if (f_.logic_id != nullptr && f_.physical_id != nullptr &&
        f_.logic_id(&logic, card, chip) == 0 &&
        f_.physical_id(static_cast<unsigned int>(logic), &physical) == 0) {
      device.physical = static_cast<int>(physical);
    }
    devices_.push_back(std::move(device));
  }

  DeviceReading ReadOne(int card, int chip) const {
    DeviceReading reading;
    if (unsigned int rate = 0; f_.utilization(card, chip, kAiCoreRate, &rate) == 0) {
      reading.utilisation_percent = rate;
    }
    if (HbmInfo hbm{}; f_.hbm != nullptr && f_.hbm(card, chip, &hbm) == 0) {
      reading.memory_used_mb = InMegabytes(hbm.memory_usage, hbm.memory_size);
    }
    if (int power = 0; f_.power != nullptr && f_.power(card, chip, &power) == 0 && power > 0) {
      reading.power_w = power / kPowerUnitsPerW;
    }
    if (int degrees = 0; f_.temperature != nullptr && f_.temperature(card, chip, &degrees) == 0) {
      reading.temperature_c = degrees;
    }
    return reading;
  }

  const Functions f_;
  std::vector<SampledDevice> devices_;
};

}  // namespace

DeviceSourceOrError OpenDcmi(const std::string& library) {
  const std::vector<std::string> usual = {"/usr/local/dcmi/libdcmi.so", "libdcmi.so"};
  ASSIGN_OR_RETURN(const DriverLibrary driver,
                   DriverLibrary::Open(library.empty() ? usual : std::vector{library}));
  ASSIGN_OR_RETURN(const Functions functions, Load(driver));
  auto source = std::make_unique<DcmiSource>(functions);
  RETURN_IF_ERROR(source->Enumerate());
  return source;
}

}  // namespace fulgur::bench
