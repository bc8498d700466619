// A DCMI with two cards of two chips. Values follow from card and chip, so a test can tell them
// apart; chip 1 of card 1 cannot be read at all, and only first chips know their power, as on A3.
#include <cstring>

extern "C" {

struct dcmi_hbm_info {
  unsigned long long memory_size;
  unsigned int freq;
  unsigned long long memory_usage;
  int temp;
  unsigned int bandwith_util_rate;
};

struct dcmi_chip_info {
  unsigned char chip_type[32];
  unsigned char chip_name[32];
  unsigned char chip_ver[32];
  unsigned int aicore_cnt;
};

static bool IsBroken(int card, int chip) { return card == 1 && chip == 1; }

int dcmi_init() { return 0; }

int dcmi_get_card_list(int* count, int* cards, int capacity) {
  if (capacity < 2) return -8001;
  *count = 2;
  cards[0] = 0;
  cards[1] = 1;
  return 0;
}

int dcmi_get_device_num_in_card(int, int* count) {
  *count = 2;
  return 0;
}

int dcmi_get_device_utilization_rate(int card, int chip, int type, unsigned int* rate) {
  if (type != 2 || IsBroken(card, chip)) return -8255;
  *rate = static_cast<unsigned int>(10 * card + chip + 50);
  return 0;
}

int dcmi_get_device_hbm_info(int card, int chip, dcmi_hbm_info* info) {
  if (IsBroken(card, chip)) return -8255;
  *info = {65536, 1600, static_cast<unsigned long long>(1000 * card + 100 * chip + 3000), 40, 7};
  return 0;
}

int dcmi_get_device_power_info(int card, int chip, int* power) {
  if (chip != 0) return -8255;
  *power = 1820 + card;
  return 0;
}

int dcmi_get_device_temperature(int card, int chip, int* degrees) {
  if (IsBroken(card, chip)) return -8255;
  *degrees = 36 + card;
  return 0;
}

int dcmi_get_device_chip_info(int, int, dcmi_chip_info* info) {
  std::memset(info, 0, sizeof(*info));
  std::memcpy(info->chip_type, "Ascend", 6);
  std::memcpy(info->chip_name, "910", 3);
  return 0;
}

int dcmi_get_device_logic_id(int* logic, int card, int chip) {
  *logic = 2 * card + chip;
  return 0;
}

int dcmi_get_device_phyid_from_logicid(unsigned int logic, unsigned int* physical) {
  *physical = logic + 8;
  return 0;
}

}  // extern "C"
